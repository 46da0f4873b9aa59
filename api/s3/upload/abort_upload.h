/* AbortMultipartUpload: DELETE /bucket/key?uploadId=ID. */
#ifndef API_S3_UPLOAD_ABORT_UPLOAD_H
#define API_S3_UPLOAD_ABORT_UPLOAD_H

#include "api/exchange/exchange.h"

enum next abort_upload_begin(struct exchange *exchange);
enum next abort_upload_resume(struct exchange *exchange);

#endif
