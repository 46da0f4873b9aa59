/* Access control lists, as far as they go here: private, public-read, authenticated-read and
 * public-read-write. Canned names and the XML bodies that say just these things are taken, all else
 * is refused by name. What public-read means: on a bucket, everyone may list it and read all of it;
 * on an object, everyone may read that object. authenticated-read is the same for all accounts, and
 * not for anonymous callers. public-read-write lets everyone write and delete in a bucket besides;
 * on an object that adds nothing, as in S3. */
#ifndef API_S3_REQUEST_ACL_H
#define API_S3_REQUEST_ACL_H

#include "api/exchange/exchange.h"
#include "storage/buckets/bucket.h"

/* A canned name; "bucket-owner-full-control" and "bucket-owner-read" say what is so anyhow:
 * private. unsupported for S3's others, invalid for names that S3 does not know. */
int acl_canned(struct span name, enum canned_acl *out, struct error *err);
/* From headers: x-amz-acl; x-amz-grant-* are unsupported. *out_given: there was one. For requests
 * that make a bucket or an object. */
int acl_headers(
	struct exchange *exchange, bool *out_given, enum canned_acl *out, struct error *err);
/* An AccessControlPolicy body: malformed_xml (code MalformedACLError), invalid_request when it says
 * what no canned one does. */
int acl_parse(struct span xml, struct span owner, struct arena *arena, enum canned_acl *out,
	struct error *err);
/* The reply of a GET ?acl. */
enum next acl_reply(struct exchange *exchange, struct span owner, enum canned_acl acl);
/* What a failed acl_* call answers: MalformedACLError, AccessControlListNotSupported or the kind's
 * own. */
enum next acl_fail(struct exchange *exchange, const struct error *err);

#endif
