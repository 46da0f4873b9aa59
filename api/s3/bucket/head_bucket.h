/* HeadBucket: HEAD /{bucket}. */
#ifndef API_S3_BUCKET_HEAD_BUCKET_H
#define API_S3_BUCKET_HEAD_BUCKET_H

#include "api/exchange/exchange.h"

enum next head_bucket_begin(struct exchange *exchange);

#endif
