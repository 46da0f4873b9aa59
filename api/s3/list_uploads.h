/* ListMultipartUploads: GET /bucket?uploads. */
#ifndef API_S3_LIST_UPLOADS_H
#define API_S3_LIST_UPLOADS_H

#include "api/exchange.h"

enum next list_uploads_begin(struct exchange *exchange);

#endif
