/* HTTP clients that nobody uses at present, with their connections: a call takes one and gives it
 * back, so that the next call need not connect again. All are for one endpoint, token and CA.
 * Internally locked; any thread. */
#ifndef CLIENT_REMOTE_SPARE_CLIENTS_H
#define CLIENT_REMOTE_SPARE_CLIENTS_H

#include "base/net/http_client.h"

enum { SPARE_CLIENTS_MAX = 16 };

struct spare_clients;

struct spare_clients *spare_clients_new(void);
void spare_clients_free(struct spare_clients *spares); /* NULL is fine */
/* The one that was given last, which is now the caller's; NULL when there is none. */
struct http_client *spare_clients_take(struct spare_clients *spares);
/* Takes it over. One that was cancelled, or is too many, is freed. */
void spare_clients_give(struct spare_clients *spares, struct http_client *client);

#endif
