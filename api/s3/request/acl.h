/* Access control lists. This server has four: private, public-read, authenticated-read and
 * public-read-write. It accepts their canned names and XML bodies that mean one of them, and
 * refuses all others by name. On a bucket, public-read lets everyone list it and read all of it; on
 * an object, it lets everyone read that object. authenticated-read does the same for all accounts,
 * but not for anonymous callers. public-read-write on a bucket also lets everyone write and delete
 * in it; on an object it adds nothing, as in S3. */
#ifndef API_S3_REQUEST_ACL_H
#define API_S3_REQUEST_ACL_H

#include "api/exchange/exchange.h"
#include "storage/buckets/bucket.h"

/* A canned name. "bucket-owner-full-control" and "bucket-owner-read" give private, because the
 * bucket's owner has these rights anyway. unsupported for S3's other names, invalid for names that
 * S3 does not know. */
int acl_canned(struct span name, enum canned_acl *out, struct error *err);
/* The header x-amz-acl, for requests that make a bucket or an object. *out_given: it was sent;
 * without it *out is private. unsupported for x-amz-grant-*, else as acl_canned. */
int acl_headers(
	struct exchange *exchange, bool *out_given, enum canned_acl *out, struct error *err);
/* An AccessControlPolicy body of a bucket or object of `owner`. malformed_xml, invalid_request when
 * no canned ACL means the same. */
int acl_parse(struct span xml, struct span owner, struct arena *arena, enum canned_acl *out,
	struct error *err);
/* Replies to a GET ?acl. */
enum next acl_reply(struct exchange *exchange, struct span owner, enum canned_acl acl);
/* Replies to a failed acl_* call: MalformedACLError for malformed_xml,
 * AccessControlListNotSupported for invalid_request, for other kinds their own code. */
enum next acl_fail(struct exchange *exchange, const struct error *err);

#endif
