/* Sub-resources on the wrong kind of path: those of buckets asked of a key, and the other way
 * round. Such a request is refused without a look at the caller's grants, and is never taken for a
 * request on the plain key or bucket. */
#ifndef API_S3_REQUEST_MISPLACED_H
#define API_S3_REQUEST_MISPLACED_H

#include "api/exchange/exchange.h"

/* On a key: 400 for the lists of a bucket (uploads, versions), as in S3; 405 for all others. */
enum next misplaced_on_key_begin(struct exchange *exchange);
/* On a bucket: 400, because the key is missing. */
enum next misplaced_on_bucket_begin(struct exchange *exchange);

#endif
