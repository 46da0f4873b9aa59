/* GET /{bucket} and GET /{bucket}?list-type=2: ListObjects in both its versions, which differ in
 * how a page says where it begins and where the next one does. */
#ifndef API_S3_BUCKET_LIST_OBJECTS_H
#define API_S3_BUCKET_LIST_OBJECTS_H

#include "api/exchange/exchange.h"

enum next list_objects_begin(struct exchange *exchange); /* version 1: marker */
/* version 2: start-after, continuation-token */
enum next list_objects_v2_begin(struct exchange *exchange);

#endif
