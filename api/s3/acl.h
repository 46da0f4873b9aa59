/* Access control lists, as far as they go here: private, and public-read. Canned names and the XML bodies that say just these two things are
 * taken, all else is refused by name. What public-read means: on a bucket, everyone may list it and read all of it; on an object, everyone
 * may read that object. */
#ifndef API_S3_ACL_H
#define API_S3_ACL_H

#include "api/exchange.h"
#include "storage/bucket.h"

/* A canned name: "private", "public-read"; "bucket-owner-full-control" and "bucket-owner-read" say what is so anyhow: private. unsupported for
 * S3's others, invalid for names that S3 does not know. */
int acl_canned(struct span name, bool *out_public, struct error *err);
/* From headers: x-amz-acl; x-amz-grant-* are unsupported. *out_given: there was one. For requests that make a bucket or an object. */
int acl_headers(struct exchange *exchange, bool *out_given, bool *out_public, struct error *err);
/* An AccessControlPolicy body: malformed_xml (code MalformedACLError), invalid_request when it says more than the two can. */
int acl_parse(struct span xml, struct span owner, struct arena *arena, bool *out_public, struct error *err);
/* The reply of a GET ?acl. */
enum next acl_reply(struct exchange *exchange, struct span owner, bool is_public);
/* What a failed acl_* call answers: MalformedACLError, AccessControlListNotSupported or the kind's own. */
enum next acl_fail(struct exchange *exchange, const struct error *err);

/* The grants of a bucket's ACL: one, or none when private. Static texts. */
size_t acl_bucket_grants(bool is_public, struct bucket_grant out[1]);

#endif
