/* ListBuckets: GET /. An account's own buckets; a key with grants sees those that its grants name;
 * the root key sees all. */
#ifndef API_S3_BUCKET_LIST_BUCKETS_H
#define API_S3_BUCKET_LIST_BUCKETS_H

#include "api/exchange/exchange.h"

enum next list_buckets_begin(struct exchange *exchange);

#endif
