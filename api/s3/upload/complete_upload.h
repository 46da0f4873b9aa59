/* CompleteMultipartUpload: POST /bucket/key?uploadId=ID. */
#ifndef API_S3_UPLOAD_COMPLETE_UPLOAD_H
#define API_S3_UPLOAD_COMPLETE_UPLOAD_H

#include "api/exchange/exchange.h"

enum next complete_upload_begin(struct exchange *exchange);
enum next complete_upload_finish(struct exchange *exchange);
enum next complete_upload_resume(struct exchange *exchange);

#endif
