/* GetObjectAttributes: GET /{bucket}/{key*}?attributes. */
#ifndef API_S3_OBJECT_OBJECT_ATTRIBUTES_H
#define API_S3_OBJECT_OBJECT_ATTRIBUTES_H

#include "api/exchange/exchange.h"

enum next object_attributes_begin(struct exchange *exchange);

#endif
