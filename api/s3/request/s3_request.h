/* The common checks of S3 requests: the expected owner, headers that must not be ignored, and
 * parameters of listings. */
#ifndef API_S3_REQUEST_S3_REQUEST_H
#define API_S3_REQUEST_S3_REQUEST_H

#include "api/exchange/exchange.h"
#include "storage/buckets/bucket.h"

/* The key of the route "/{bucket}/{key*}". */
struct span s3_request_key(const struct exchange *exchange);

/* x-amz-expected-bucket-owner: 0 when it is absent or names the bucket's owner; denied, or
 * no_bucket. */
int s3_request_check_owner(struct exchange *exchange, struct error *err);
/* A header that changes the meaning of the request and that this server does not support. Ignoring
 * it would do something else than the client asked. */
struct s3_request_refusal {
	/* in lower case; one that ends with '-' is the beginning of several headers */
	const char *header;
	const char *allowed; /* values that are accepted, separated by '|'; NULL: none */
	const char *message;
};
/* Returns true with 501 set when the request has a header of one of the rows. The error names that
 * header. */
bool s3_request_refuses(struct exchange *exchange, const struct s3_request_refusal *rows,
	size_t count, enum next *out_next);
/* The first header of the request whose name begins with `prefix`, in lower case; NULL: none. */
const char *s3_request_find_header(struct exchange *exchange, const char *prefix);

/* The size of a page, from the query parameter `name`: `fallback` when absent, capped at `most`.
 * Returns false with the reply set when it is not a number from 0 to 2147483647. */
bool s3_request_limit(struct exchange *exchange, const char *name, uint64_t fallback, uint64_t most,
	uint64_t *out_limit, enum next *out_next);

/* Continuation tokens: the last name of a page in hex, so that escaping by clients cannot change
 * it. Reading returns false when the token is not of this form. */
struct span s3_request_make_token(struct exchange *exchange, struct span last);
bool s3_request_read_token(struct exchange *exchange, struct span token, struct span *out_last);

#endif
