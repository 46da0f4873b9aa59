/* GetObject and HeadObject: GET and HEAD /{bucket}/{key*}. */
#ifndef API_S3_OBJECT_GET_OBJECT_H
#define API_S3_OBJECT_GET_OBJECT_H

#include "api/exchange/exchange.h"

enum next get_object_begin(struct exchange *exchange);
enum next get_object_resume(struct exchange *exchange);

#endif
