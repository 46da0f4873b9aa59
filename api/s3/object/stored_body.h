/* The common part of PutObject and UploadPart: a request body whose bytes storage keeps, as an
 * object or as a part. All functions run on the exchange's reactor. */
#ifndef API_S3_OBJECT_STORED_BODY_H
#define API_S3_OBJECT_STORED_BODY_H

#include "api/s3/request/checksum_headers.h"

struct stored_body { /* the first member of the exchange's state */
	struct body_sink sink;
	struct exchange *exchange; /* its call is the put that the bytes go to */
	struct checksum_headers checksum;
};
/* Sets up the sink. `write` gets the bytes. An aborted body drops the exchange's call, and with it
 * all bytes. The put is not finished by the sink but in the handler's `finish`, when every filter
 * has found the body good. */
void stored_body_init(struct stored_body *body, struct exchange *exchange,
	enum sink_result (*write)(struct body_sink *sink, struct span bytes, struct error *err));

/* length_required when the request announces neither a length nor chunks; too_large when the
 * announced length is over the server's limit. The content's length counts, not that of an
 * aws-chunked body around it; when that is not announced, the limit is checked as the bytes come.
 * The texts name the `subject` ("A PUT") and the `limit` ("object size"). */
int stored_body_check_length(
	const struct exchange *exchange, const char *subject, const char *limit, struct error *err);

/* object_put_bad_checksum or upload_put_bad_checksum. */
typedef bool stored_body_bad_checksum(
	const struct call *call, struct checksum *out_expected, struct checksum *out_actual);
/* Replies to a put that failed with `err`, also for PostObject: BadDigest with both values when a
 * checksum differs. */
enum next stored_body_reply_failed(
	struct exchange *exchange, stored_body_bad_checksum *bad_checksum, const struct error *err);

#endif
