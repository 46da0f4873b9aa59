/* The right to talk to the server's content-addressed half about one bucket: a token, fetched with
 * the user's own and renewed before it ends. Every request goes to the endpoint that the user
 * named, whatever host the server calls its own. Any thread, each with its own connection. */
#ifndef CLIENT_TRANSFER_XET_ACCESS_H
#define CLIENT_TRANSFER_XET_ACCESS_H

#include <stdatomic.h>

#include "client/remote/remote.h"

enum { XET_TOKEN_MAX_BYTES = 1024 };

struct xet_traffic { /* bodies of requests that were answered well, and of their answers */
	_Atomic uint64_t sent; /* of xorbs and shards */
	_Atomic uint64_t received;
};

struct xet_access;
/* NULL with unsupported where the server has no such half or gives this caller no token: plain
 * requests then do the work, or say what is wrong. `bucket` is copied. */
struct xet_access *xet_access_open(
	struct remote *remote, struct span bucket, bool is_write, struct error *err);
void xet_access_close(struct xet_access *access); /* NULL is fine */
struct xet_traffic *xet_access_traffic(struct xet_access *access);

/* As remote_send, with the token; `request->target` begins behind the half's own path
 * ("/v1/..."). */
int xet_access_send(struct xet_access *access, struct remote *remote,
	const struct http_request *request, struct http_response *response, struct error *err);

#endif
