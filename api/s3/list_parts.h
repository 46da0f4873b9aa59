/* ListParts: GET /bucket/key?uploadId=ID. */
#ifndef API_S3_LIST_PARTS_H
#define API_S3_LIST_PARTS_H

#include "api/exchange.h"

enum next list_parts_begin(struct exchange *exchange);

#endif
