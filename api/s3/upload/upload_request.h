/* The common part of requests on one multipart upload: which upload and which part they name. */
#ifndef API_S3_UPLOAD_UPLOAD_REQUEST_H
#define API_S3_UPLOAD_UPLOAD_REQUEST_H

#include "api/exchange/exchange.h"
#include "storage/uploads/upload.h"

/* Bucket, key and the query parameter uploadId. Returns false with the reply set when the bucket
 * does not exist, x-amz-expected-bucket-owner names another owner, or the id does not have the form
 * of this server's ids (NoSuchUpload). Whether the upload exists is for its user to find out. */
bool upload_request_read(struct exchange *exchange, struct upload_ref *out, enum next *out_next);
/* The query parameter partNumber. Returns false with 400 InvalidArgument set unless it is from 1 to
 * 10000. */
bool upload_request_number(struct exchange *exchange, uint32_t *out, enum next *out_next);
/* The ETag in quotes, as a header has it; in the arena. */
const char *upload_request_quote(struct exchange *exchange, const char *etag);

#endif
