/* The header by which replies announce that a lifecycle rule will expire an object.
 * api/s3/bucket/handlers.h has the operations on the rules. */
#ifndef API_S3_BUCKET_BUCKET_LIFECYCLE_H
#define API_S3_BUCKET_BUCKET_LIFECYCLE_H

#include "api/exchange/exchange.h"
#include "storage/versions/object.h"

/* Adds x-amz-expiration when a rule of the request's bucket will expire this version; nothing for
 * versions that are not current. Costs next to nothing when no bucket has rules. */
void bucket_lifecycle_add_expiration(struct exchange *exchange, const struct object *object);

#endif
