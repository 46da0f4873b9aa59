/* GetBucketAcl and PutBucketAcl: GET and PUT /{bucket}?acl; api/s3/request/acl.h says which ACLs
 * there are. */
#ifndef API_S3_BUCKET_BUCKET_ACL_H
#define API_S3_BUCKET_BUCKET_ACL_H

#include "api/exchange/exchange.h"
#include "storage/buckets/bucket.h"

enum next get_bucket_acl_begin(struct exchange *exchange);
enum next put_bucket_acl_finish(struct exchange *exchange); /* behind bucket_setting_put_begin */

/* May this bucket, or an object in it, be made public by an ACL? invalid_request when its ownership
 * controls take no ACLs, denied when public ones are blocked. Also for handlers that write objects
 * with an x-amz-acl other than private. */
int bucket_acl_check_public(struct exchange *exchange, struct error *err);
/* The ACL that a request names: by header, or else by its body. */
int bucket_acl_read(struct exchange *exchange, struct span xml, struct span owner,
	enum canned_acl *out, struct error *err);

#endif
