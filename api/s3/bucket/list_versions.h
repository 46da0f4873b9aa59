/* GET /{bucket}?versions: ListObjectVersions. */
#ifndef API_S3_BUCKET_LIST_VERSIONS_H
#define API_S3_BUCKET_LIST_VERSIONS_H

#include "api/exchange/exchange.h"

enum next list_versions_begin(struct exchange *exchange);

#endif
