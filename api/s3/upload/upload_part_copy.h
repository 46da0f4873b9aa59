/* UploadPartCopy: a PUT of a part with x-amz-copy-source. Called by the steps of upload_part.h. */
#ifndef API_S3_UPLOAD_UPLOAD_PART_COPY_H
#define API_S3_UPLOAD_UPLOAD_PART_COPY_H

#include "api/exchange/exchange.h"

enum next upload_part_copy_begin(struct exchange *exchange);
enum next upload_part_copy_finish(struct exchange *exchange);
enum next upload_part_copy_resume(struct exchange *exchange);

#endif
