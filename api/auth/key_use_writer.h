/* The thread that writes down when keys were last used: once a minute, and when it stops. */
#ifndef API_AUTH_KEY_USE_WRITER_H
#define API_AUTH_KEY_USE_WRITER_H

#include "api/auth/keyring.h"

struct key_use_writer;
/* Borrows the keyring and its store, which must outlive it. */
struct key_use_writer *key_use_writer_start(struct keyring *keyring);
void key_use_writer_stop(struct key_use_writer *writer); /* NULL is fine */

#endif
