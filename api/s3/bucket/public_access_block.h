/* A bucket's public access block. It has four switches: BlockPublicAcls and BlockPublicPolicy
 * refuse new public settings, IgnorePublicAcls and RestrictPublicBuckets put existing ones out of
 * force. */
#ifndef API_S3_BUCKET_PUBLIC_ACCESS_BLOCK_H
#define API_S3_BUCKET_PUBLIC_ACCESS_BLOCK_H

#include "api/exchange/exchange.h"
#include "storage/buckets/bucket_grant.h"

/* denied when the request's bucket has this switch on: BLOCK_PUBLIC_ACLS or BLOCK_PUBLIC_POLICY. */
int public_access_block_check(
	struct exchange *exchange, enum public_access_block bit, struct error *err);

#endif
