/* GetPublicAccessBlock, PutPublicAccessBlock, DeletePublicAccessBlock: /{bucket}?publicAccessBlock.
 * Its four switches are obeyed: BlockPublicAcls and BlockPublicPolicy refuse new public settings,
 * IgnorePublicAcls and RestrictPublicBuckets take those that are there out of force. */
#ifndef API_S3_BUCKET_PUBLIC_ACCESS_BLOCK_H
#define API_S3_BUCKET_PUBLIC_ACCESS_BLOCK_H

#include "api/exchange/exchange.h"
#include "storage/buckets/bucket_grant.h"

enum next get_public_access_block_begin(struct exchange *exchange);
/* behind bucket_setting_put_begin */
enum next put_public_access_block_finish(struct exchange *exchange);
enum next delete_public_access_block_begin(struct exchange *exchange);

/* denied when the bucket has this switch (BLOCK_PUBLIC_ACLS or BLOCK_PUBLIC_POLICY) on. */
int public_access_block_check(
	struct exchange *exchange, enum public_access_block bit, struct error *err);

#endif
