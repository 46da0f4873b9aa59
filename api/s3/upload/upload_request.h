/* What requests on one multipart upload share: which one they name, which part, and what its errors
 * tell. s3.md section 6. */
#ifndef API_S3_UPLOAD_UPLOAD_REQUEST_H
#define API_S3_UPLOAD_UPLOAD_REQUEST_H

#include "api/exchange/exchange.h"
#include "storage/uploads/upload.h"

/* Bucket, key and the query parameter uploadId. False and the reply set: the bucket is missing or
 * another's than expected (x-amz-expected-bucket-owner), or the id is none that this server gives
 * out (NoSuchUpload). */
bool upload_request_read(struct exchange *exchange, struct upload_ref *out, enum next *out_next);
/* The query parameter partNumber, 1..10000; else 400 InvalidArgument. */
bool upload_request_number(struct exchange *exchange, uint32_t *out, enum next *out_next);
/* An ETag header or header-like text of the arena: quoted. */
const char *upload_request_quote(struct exchange *exchange, const char *etag);

#endif
