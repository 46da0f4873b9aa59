/* What the S3 handlers ask of every request: expected owner, headers that must not be passed over
 * in silence, list parameters. */
#ifndef API_S3_REQUEST_S3_REQUEST_H
#define API_S3_REQUEST_S3_REQUEST_H

#include "api/exchange/exchange.h"
#include "storage/buckets/bucket.h"

/* Of the route "/{bucket}/{key*}". */
struct span s3_request_key(const struct exchange *exchange);

/* x-amz-expected-bucket-owner: 0 when absent or right; denied, or no_bucket. */
int s3_request_check_owner(struct exchange *exchange, struct error *err);
/* A header that changes what the request means and that this server does not honour: passing over
 * it would do something else than was asked. The rows name them; NULL when there is none, else its
 * name. */
struct s3_request_refusal {
	/* lower case; one that ends with '-' stands for all that begin so */
	const char *header;
	const char *allowed; /* values that are fine, separated by '|'; NULL: none */
	const char *message;
};
const struct s3_request_refusal *s3_request_refused(
	struct exchange *exchange, const struct s3_request_refusal *rows, size_t count);

/* A number of a page's size: `fallback` when absent, capped at `most`. False (and the reply set in
 * *out_next) when it is no number. */
bool s3_request_limit(struct exchange *exchange, const char *name, uint64_t fallback, uint64_t most,
	uint64_t *out_limit, enum next *out_next);

/* Continuation tokens: the last name of a page, in hex, so that no client's query escaping can hurt
 * it. */
struct span s3_request_make_token(struct exchange *exchange, struct span last);
bool s3_request_read_token(struct exchange *exchange, struct span token, struct span *out_last);

#endif
