/* The steps of the uploads by form, for the table in api/s3/s3_routes.c. api/exchange/exchange.h
 * says when and where each step runs. */
#ifndef API_S3_POST_HANDLERS_H
#define API_S3_POST_HANDLERS_H

#include "api/exchange/exchange.h"

/* PostObject: POST /{bucket} with an upload form (multipart/form-data), as browsers send it. */
enum next post_object_begin(struct exchange *exchange);
enum next post_object_finish(struct exchange *exchange);
enum next post_object_resume(struct exchange *exchange);

#endif
