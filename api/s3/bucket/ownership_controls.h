/* GetBucketOwnershipControls, PutBucketOwnershipControls, DeleteBucketOwnershipControls:
 * /{bucket}?ownershipControls. A bucket's owner owns all that is in it, so the three values differ
 * in one thing only: under BucketOwnerEnforced no ACL can make anything public. */
#ifndef API_S3_BUCKET_OWNERSHIP_CONTROLS_H
#define API_S3_BUCKET_OWNERSHIP_CONTROLS_H

#include "api/exchange/exchange.h"

enum next get_ownership_controls_begin(struct exchange *exchange);
/* behind bucket_setting_put_begin */
enum next put_ownership_controls_finish(struct exchange *exchange);
enum next delete_ownership_controls_begin(struct exchange *exchange);

bool ownership_controls_is_value(struct span value);
/* *out: the bucket takes no ACLs. */
int ownership_controls_enforced(struct exchange *exchange, bool *out, struct error *err);

#endif
