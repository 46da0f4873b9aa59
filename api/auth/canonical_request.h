/* The canonical form of a request, which SigV4 signatures cover. It is made from the request as
 * sent, never from forms that other code decoded. Any thread. */
#ifndef API_AUTH_CANONICAL_REQUEST_H
#define API_AUTH_CANONICAL_REQUEST_H

#include "api/exchange/exchange.h"

enum { CANONICAL_REQUEST_MAX_BYTES = 1024 * 1024 };

struct canonical_request {
	struct span signed_headers; /* a;b;c */
	struct span payload;        /* the value of x-amz-content-sha256, or a replacement */
	/* a query parameter that the form does not contain (name in any case); NULL: none */
	const char *left_out;
};
/* Fails with bad_uri when an escape is malformed or encodes a NUL, and with too_large. */
int canonical_request_build(struct exchange *exchange, const struct canonical_request *request,
	struct buffer *out, struct error *err);

/* The parts of the canonical form. */
int canonical_request_path(struct span path, struct buffer *out, struct error *err);
int canonical_request_query(
	struct span query, const char *left_out, struct buffer *out, struct error *err);
/* Trims the value, and replaces each inner run of spaces by one space. */
void canonical_request_value(struct span value, struct buffer *out);
const char *canonical_request_method(enum method method);

#endif
