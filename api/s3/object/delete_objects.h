/* DeleteObjects: POST /{bucket}?delete. */
#ifndef API_S3_OBJECT_DELETE_OBJECTS_H
#define API_S3_OBJECT_DELETE_OBJECTS_H

#include "api/exchange/exchange.h"

enum next delete_objects_begin(struct exchange *exchange);
enum next delete_objects_finish(struct exchange *exchange);
enum next delete_objects_resume(struct exchange *exchange);

#endif
