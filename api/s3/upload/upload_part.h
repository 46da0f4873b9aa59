/* UploadPart, and by a header UploadPartCopy: PUT /bucket/key?partNumber=N&uploadId=ID. */
#ifndef API_S3_UPLOAD_UPLOAD_PART_H
#define API_S3_UPLOAD_UPLOAD_PART_H

#include "api/exchange/exchange.h"

enum next upload_part_begin(struct exchange *exchange);
enum next upload_part_finish(struct exchange *exchange);
enum next upload_part_resume(struct exchange *exchange);

#endif
