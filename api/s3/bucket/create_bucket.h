/* CreateBucket: PUT /{bucket}, perhaps with a CreateBucketConfiguration. One's own bucket again:
 * 200. */
#ifndef API_S3_BUCKET_CREATE_BUCKET_H
#define API_S3_BUCKET_CREATE_BUCKET_H

#include "api/exchange/exchange.h"

enum next create_bucket_begin(struct exchange *exchange);
enum next create_bucket_finish(struct exchange *exchange);
enum next create_bucket_resume(struct exchange *exchange);

#endif
