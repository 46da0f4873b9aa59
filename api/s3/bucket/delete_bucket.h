/* DeleteBucket: DELETE /{bucket}. 409 while it holds objects or runs. */
#ifndef API_S3_BUCKET_DELETE_BUCKET_H
#define API_S3_BUCKET_DELETE_BUCKET_H

#include "api/exchange/exchange.h"

enum next delete_bucket_begin(struct exchange *exchange);
enum next delete_bucket_resume(struct exchange *exchange);

#endif
