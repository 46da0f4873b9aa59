/* ListParts: GET /bucket/key?uploadId=ID. */
#ifndef API_S3_UPLOAD_LIST_PARTS_H
#define API_S3_UPLOAD_LIST_PARTS_H

#include "api/exchange/exchange.h"

enum next list_parts_begin(struct exchange *exchange);

#endif
