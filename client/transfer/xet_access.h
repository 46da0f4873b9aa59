/* Access to the server's Xet face for one bucket: a token, which is fetched with the user's own
 * token and renewed before it expires. Every request goes to the endpoint that the user named, even
 * if the server names another host. Any thread, each with its own connection. */
#ifndef CLIENT_TRANSFER_XET_ACCESS_H
#define CLIENT_TRANSFER_XET_ACCESS_H

#include <stdatomic.h>

#include "client/remote/remote.h"

enum { XET_TOKEN_MAX_BYTES = 1024 };

struct xet_traffic {           /* bytes of the bodies of successful requests and of their answers */
	_Atomic uint64_t sent; /* of xorbs and shards */
	_Atomic uint64_t received;
};

struct xet_access;
/* Fetches the first token. NULL with unsupported when the server has no Xet face or gives this
 * caller no token: then plain requests do the work, or fail with the reason. `bucket` is copied. */
struct xet_access *xet_access_open(
	struct remote *remote, struct span bucket, bool is_write, struct error *err);
void xet_access_close(struct xet_access *access); /* NULL is fine */
struct xet_traffic *xet_access_traffic(struct xet_access *access);

/* Like remote_send, with the token. `request->target` is the path below that of the face
 * ("/v1/..."). */
int xet_access_send(struct xet_access *access, struct remote *remote,
	const struct http_request *request, struct http_response *response, struct error *err);

#endif
