/* ACLs of buckets and objects: which one a request asks for, and whether the bucket allows it.
 * api/s3/request/acl.h says which ACLs there are. */
#ifndef API_S3_BUCKET_BUCKET_ACL_H
#define API_S3_BUCKET_BUCKET_ACL_H

#include "api/exchange/exchange.h"
#include "storage/buckets/bucket.h"

/* Whether an ACL may make this bucket, or an object in it, public. invalid_request when the
 * bucket's ownership controls do not allow ACLs, denied when public ACLs are blocked. Handlers that
 * write objects call it too, for each x-amz-acl other than private. */
int bucket_acl_check_public(struct exchange *exchange, struct error *err);
/* The ACL that a request asks for, in the header x-amz-acl or else in its body. `owner`: of the
 * bucket. Fails as acl_headers and acl_parse; malformed_xml when the request has both. */
int bucket_acl_read(struct exchange *exchange, struct span xml, struct span owner,
	enum canned_acl *out, struct error *err);

#endif
