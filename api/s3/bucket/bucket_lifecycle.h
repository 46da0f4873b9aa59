/* GetBucketLifecycleConfiguration, PutBucketLifecycleConfiguration, DeleteBucketLifecycle:
 * /{bucket}?lifecycle. storage/upkeep/lifecycle_worker.h does what the rules say. */
#ifndef API_S3_BUCKET_BUCKET_LIFECYCLE_H
#define API_S3_BUCKET_BUCKET_LIFECYCLE_H

#include "api/exchange/exchange.h"
#include "storage/versions/object.h"

enum next get_bucket_lifecycle_begin(struct exchange *exchange);
/* behind bucket_setting_put_begin */
enum next put_bucket_lifecycle_finish(struct exchange *exchange);
enum next delete_bucket_lifecycle_begin(struct exchange *exchange);

/* x-amz-expiration, when a rule of the request's bucket will expire this current version. Costs
 * next to nothing when no bucket has rules. */
void bucket_lifecycle_add_expiration(struct exchange *exchange, const struct object *object);

#endif
