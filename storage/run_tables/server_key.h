/* Keys that are the server's: what it makes of a run's steps lies there, and clients read it.
 * Internal to storage. */
#ifndef STORAGE_RUN_TABLES_SERVER_KEY_H
#define STORAGE_RUN_TABLES_SERVER_KEY_H

#include "storage/db/db.h"

/* Inside a change of a client that writes or removes the key: denied when it is a made anchor's
 * place (step_anchor_key.h) or a view's (view_key.h). */
int server_key_guard(struct db *db, int64_t bucket, struct span key, struct error *err);

#endif
