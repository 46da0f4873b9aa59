/* PutObject: PUT /{bucket}/{key*}. */
#ifndef API_S3_OBJECT_PUT_OBJECT_H
#define API_S3_OBJECT_PUT_OBJECT_H

#include "api/exchange/exchange.h"

enum next put_object_begin(struct exchange *exchange);
enum next put_object_finish(struct exchange *exchange);
enum next put_object_resume(struct exchange *exchange);

#endif
