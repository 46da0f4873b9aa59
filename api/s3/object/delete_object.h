/* DeleteObject: DELETE /{bucket}/{key*}. 204 whether or not the key was there. */
#ifndef API_S3_OBJECT_DELETE_OBJECT_H
#define API_S3_OBJECT_DELETE_OBJECT_H

#include "api/exchange/exchange.h"

enum next delete_object_begin(struct exchange *exchange);
enum next delete_object_resume(struct exchange *exchange);

#endif
