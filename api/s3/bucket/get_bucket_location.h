/* GetBucketLocation: GET /{bucket}?location. s3cmd and minio clients ask it before anything
 * else. */
#ifndef API_S3_BUCKET_GET_BUCKET_LOCATION_H
#define API_S3_BUCKET_GET_BUCKET_LOCATION_H

#include "api/exchange/exchange.h"

enum next get_bucket_location_begin(struct exchange *exchange);

#endif
