#include "api/s3/bucket/bucket_acl.h"

#include "api/s3/bucket/bucket_setting.h"
#include "api/s3/bucket/handlers.h"
#include "api/s3/bucket/ownership_controls.h"
#include "api/s3/bucket/public_access_block.h"
#include "api/s3/request/acl.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/request/xml_body.h"

enum next get_bucket_acl_begin(struct exchange *exchange)
{
	struct store *const store = exchange->context->store;
	struct error err = {0};
	struct bucket bucket;
	struct bucket_grants listed;
	if (s3_request_check_owner(exchange, &err) != 0 ||
		bucket_find(store, exchange_bucket(exchange), exchange->arena, &bucket, &err) !=
			0 ||
		bucket_grant_list(store, bucket.id, BUCKET_GRANTS_OF_ACL, exchange->arena, &listed,
			&err) != 0)
		return exchange_fail(exchange, &err);
	return acl_reply(
		exchange, bucket.owner, bucket_grant_find_acl(listed.grants, listed.count));
}

int bucket_acl_check_public(struct exchange *exchange, struct error *err)
{
	bool enforced = false;
	if (ownership_controls_enforced(exchange, &enforced, err) != 0)
		return -1;
	if (enforced)
		return error_set(err, ERROR_INVALID_REQUEST,
			"The bucket does not allow ACLs: its ownership controls say BucketOwnerEnforced.");
	return public_access_block_check(exchange, BLOCK_PUBLIC_ACLS, err);
}

int bucket_acl_read(struct exchange *exchange, struct span xml, struct span owner,
	enum canned_acl *out, struct error *err)
{
	bool given = false;
	if (acl_headers(exchange, &given, out, err) != 0)
		return -1;
	if (given && xml.len > 0)
		return error_set(err, ERROR_MALFORMED_XML,
			"An ACL must be in the header x-amz-acl or in the body, not in both.");
	return given ? 0 : acl_parse(xml, owner, exchange->arena, out, err);
}

enum next put_bucket_acl_finish(struct exchange *exchange)
{
	struct error err = {0};
	struct bucket bucket;
	struct bucket_grant grants[BUCKET_GRANTS_OF_ACL_MAX];
	struct span xml;
	enum next next;
	enum canned_acl acl;
	if (!xml_body_check(exchange, &xml, &next))
		return next;
	if (bucket_find(exchange->context->store, exchange_bucket(exchange), exchange->arena,
		    &bucket, &err) != 0)
		return exchange_fail(exchange, &err);
	if (bucket_acl_read(exchange, xml, bucket.owner, &acl, &err) != 0 ||
		(acl != ACL_PRIVATE && bucket_acl_check_public(exchange, &err) != 0))
		return acl_fail(exchange, &err);
	const struct bucket_edit edit = {.replaces_grants = BUCKET_GRANTS_OF_ACL,
		.grants = grants,
		.grant_count = bucket_grant_of_acl(acl, grants)};
	ASSERT(edit.grant_count <= BUCKET_GRANTS_OF_ACL_MAX);
	return bucket_setting_start(exchange, &edit, 200);
}
