/* A bucket's ownership controls: BucketOwnerEnforced, BucketOwnerPreferred or ObjectWriter. The
 * owner of a bucket owns all objects in it, so the values differ in one thing only: with
 * BucketOwnerEnforced no ACL can make anything public. */
#ifndef API_S3_BUCKET_OWNERSHIP_CONTROLS_H
#define API_S3_BUCKET_OWNERSHIP_CONTROLS_H

#include "api/exchange/exchange.h"

/* Whether the value is one of the three. */
bool ownership_controls_is_value(struct span value);
/* *out: the request's bucket has BucketOwnerEnforced. */
int ownership_controls_enforced(struct exchange *exchange, bool *out, struct error *err);

#endif
