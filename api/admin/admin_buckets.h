/* GET and PUT /-/buckets/{bucket}: settings of a bucket that S3 does not have, for its owner.
 * docs/protocol/admin.md. */
#ifndef API_ADMIN_ADMIN_BUCKETS_H
#define API_ADMIN_ADMIN_BUCKETS_H

#include "api/exchange/exchange.h"
#include "storage/buckets/bucket.h"

enum next admin_bucket_get_begin(struct exchange *exchange);
enum next admin_bucket_put_begin(struct exchange *exchange);
enum next admin_bucket_put_finish(struct exchange *exchange);
enum next admin_bucket_put_resume(struct exchange *exchange);

/* Parses the body of PUT, {"etag": "md5" | "fast" | "default"}. Fails with invalid for other
 * bodies. */
int admin_bucket_parse(struct span json, struct bucket_edit *out, struct error *err);

#endif
