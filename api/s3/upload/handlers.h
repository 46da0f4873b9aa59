/* The steps of the operations on multipart uploads, for the table in api/s3/s3_routes.c.
 * api/exchange/exchange.h says when and where each step runs. */
#ifndef API_S3_UPLOAD_HANDLERS_H
#define API_S3_UPLOAD_HANDLERS_H

#include "api/exchange/exchange.h"

/* CreateMultipartUpload: POST /{bucket}/{key*}?uploads. */
enum next create_upload_begin(struct exchange *exchange);
enum next create_upload_resume(struct exchange *exchange);

/* UploadPart: PUT /{bucket}/{key*}?partNumber=N&uploadId=ID. */
enum next upload_part_begin(struct exchange *exchange);
enum next upload_part_finish(struct exchange *exchange);
enum next upload_part_resume(struct exchange *exchange);
/* UploadPartCopy: the same with x-amz-copy-source. The steps of UploadPart call these. */
enum next upload_part_copy_begin(struct exchange *exchange);
enum next upload_part_copy_finish(struct exchange *exchange);
enum next upload_part_copy_resume(struct exchange *exchange);

/* ListParts: GET /{bucket}/{key*}?uploadId=ID. */
enum next list_parts_begin(struct exchange *exchange);

/* ListMultipartUploads: GET /{bucket}?uploads. */
enum next list_uploads_begin(struct exchange *exchange);

/* CompleteMultipartUpload: POST /{bucket}/{key*}?uploadId=ID. */
enum next complete_upload_begin(struct exchange *exchange);
enum next complete_upload_finish(struct exchange *exchange);
enum next complete_upload_resume(struct exchange *exchange);

/* AbortMultipartUpload: DELETE /{bucket}/{key*}?uploadId=ID. */
enum next abort_upload_begin(struct exchange *exchange);
enum next abort_upload_resume(struct exchange *exchange);

#endif
