/* Sub-resources on the wrong kind of path: what only buckets have asked of a key, and the other way
 * round. Such a request is refused for itself, whoever sends it, and never taken for one of the
 * plain key or bucket. */
#ifndef API_S3_REQUEST_MISPLACED_H
#define API_S3_REQUEST_MISPLACED_H

#include "api/exchange/exchange.h"

/* On a key: 400 for the lists of a bucket (uploads, versions), as S3 says; 405 for all else. */
enum next misplaced_on_key_begin(struct exchange *exchange);
/* On a bucket: 400, a key is missing. */
enum next misplaced_on_bucket_begin(struct exchange *exchange);

#endif
