/* ListObjectsV2: GET /{bucket}?list-type=2. */
#ifndef API_S3_LIST_OBJECTS_V2_H
#define API_S3_LIST_OBJECTS_V2_H

#include "api/exchange.h"

enum next list_objects_v2_begin(struct exchange *exchange);

#endif
