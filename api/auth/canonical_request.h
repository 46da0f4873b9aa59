/* The canonical form of a request, over which SigV4 signatures go (s3.md 2.2). Works on the request
 * as sent, never on decoded forms of somebody else's making. Any thread. */
#ifndef API_AUTH_CANONICAL_REQUEST_H
#define API_AUTH_CANONICAL_REQUEST_H

#include "api/exchange/exchange.h"

enum { CANONICAL_REQUEST_MAX_BYTES = 1024 * 1024 };

struct canonical_request {
	struct span signed_headers; /* a;b;c */
	struct span payload;        /* what x-amz-content-sha256 says, or stands for it */
	/* a query parameter that is not part of it (name in any case); NULL: none */
	const char *left_out;
};
/* bad_uri when an escape is malformed or hides a NUL; too_large. */
int canonical_request_build(struct exchange *exchange, const struct canonical_request *request,
	struct buffer *out, struct error *err);

/* Its pieces. */
int canonical_request_path(struct span path, struct buffer *out, struct error *err);
int canonical_request_query(
	struct span query, const char *left_out, struct buffer *out, struct error *err);
/* trimmed, inner runs of spaces made one */
void canonical_request_value(struct span value, struct buffer *out);
const char *canonical_request_method(enum method method);

#endif
