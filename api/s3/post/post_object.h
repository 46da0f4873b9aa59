/* PostObject: POST /{bucket} with an upload form (multipart/form-data), as browsers send it. s3.md
 * 2.6. */
#ifndef API_S3_POST_POST_OBJECT_H
#define API_S3_POST_POST_OBJECT_H

#include "api/exchange/exchange.h"

enum next post_object_begin(struct exchange *exchange);
enum next post_object_finish(struct exchange *exchange);
enum next post_object_resume(struct exchange *exchange);

#endif
