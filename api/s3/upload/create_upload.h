/* CreateMultipartUpload: POST /bucket/key?uploads. */
#ifndef API_S3_UPLOAD_CREATE_UPLOAD_H
#define API_S3_UPLOAD_CREATE_UPLOAD_H

#include "api/exchange/exchange.h"

enum next create_upload_begin(struct exchange *exchange);
enum next create_upload_resume(struct exchange *exchange);

#endif
