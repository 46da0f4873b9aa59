/* ListMultipartUploads: GET /bucket?uploads. */
#ifndef API_S3_UPLOAD_LIST_UPLOADS_H
#define API_S3_UPLOAD_LIST_UPLOADS_H

#include "api/exchange/exchange.h"

enum next list_uploads_begin(struct exchange *exchange);

#endif
