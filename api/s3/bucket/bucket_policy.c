/* A policy is stored twice in one change: as the document that GET gives back, and as the grants
 * that it means, which are all that requests are judged by. A policy with public grants is refused
 * while the bucket's public access block forbids it. */
#include "api/s3/bucket/handlers.h"

#include "api/s3/bucket/bucket_setting.h"
#include "api/s3/bucket/policy_document.h"
#include "api/s3/bucket/public_access_block.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/request/xml_body.h"
#include "api/s3/xml/xml_writer.h"

enum { BODY_MAX_BYTES = 4096 };

static enum next reply_failed(struct exchange *exchange, const struct error *err);
static enum next start(struct exchange *exchange, struct span json,
	const struct bucket_grant *grants, size_t count);
static int is_public(struct exchange *exchange, bool *out, struct error *err);

enum next get_bucket_policy_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct span document;
	if (bucket_setting_find(exchange, BUCKET_POLICY, &document, &err) != 0)
		return exchange_fail(exchange, &err);
	if (document.len == 0)
		return s3_error_reply(exchange,
			&(struct s3_error){.kind = ERROR_NOT_FOUND,
				.code = "NoSuchBucketPolicy",
				.message = "The bucket policy does not exist"});
	return exchange_reply_body(exchange, 200, "application/json", document);
}

enum next put_bucket_policy_finish(struct exchange *exchange)
{
	struct error err = {0};
	struct bucket_grant *grants;
	struct span json;
	enum next next;
	size_t count;
	if (!xml_body_check(exchange, &json, &next))
		return next;
	if (policy_document_parse(json, exchange_bucket(exchange).name, exchange->arena, &grants,
		    &count, &err) != 0 ||
		(policy_document_is_public(grants, count) &&
			public_access_block_check(exchange, BLOCK_PUBLIC_POLICY, &err) != 0))
		return reply_failed(exchange, &err);
	return start(exchange, json, grants, count);
}

enum next delete_bucket_policy_begin(struct exchange *exchange)
{
	static const struct span nothing = {NULL, 0};
	struct error err = {0};
	if (s3_request_check_owner(exchange, &err) != 0)
		return exchange_fail(exchange, &err);
	return start(exchange, nothing, NULL, 0);
}

enum next get_bucket_policy_status_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct buffer body;
	struct xml_writer xml;
	bool public = false;
	if (is_public(exchange, &public, &err) != 0)
		return exchange_fail(exchange, &err);
	buffer_init(&body, BODY_MAX_BYTES);
	xml_writer_begin(&xml, &body, "PolicyStatus", true);
	xml_writer_bool(&xml, "IsPublic", public);
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}

static enum next reply_failed(struct exchange *exchange, const struct error *err)
{
	if (err->kind == ERROR_UNSUPPORTED)
		return s3_error_not_implemented(
			exchange, "policy", arena_format(exchange->arena, "%s", err->text));
	if (err->kind != ERROR_INVALID)
		return exchange_fail(exchange, err);
	return s3_error_reply(exchange,
		&(struct s3_error){
			.kind = ERROR_INVALID, .code = "MalformedPolicy", .message = err->text});
}

/* Starts the change. Empty `json` removes the policy. */
static enum next start(struct exchange *exchange, struct span json,
	const struct bucket_grant *grants, size_t count)
{
	ASSERT(count <= BUCKET_GRANTS_MAX);
	const struct bucket_document document = {.kind = BUCKET_POLICY, .bytes = json};
	const struct bucket_edit edit = {.documents = &document,
		.document_count = 1,
		.replaces_grants = BUCKET_GRANTS_OF_POLICY,
		.grants = grants,
		.grant_count = count};
	return bucket_setting_start(exchange, &edit, 204);
}

static int is_public(struct exchange *exchange, bool *out, struct error *err)
{
	static const enum bucket_grant_source sources[] = {
		BUCKET_GRANTS_OF_ACL, BUCKET_GRANTS_OF_POLICY};
	struct store *const store = exchange->context->store;
	struct bucket bucket;
	*out = false;
	if (s3_request_check_owner(exchange, err) != 0 ||
		bucket_find(store, exchange_bucket(exchange), exchange->arena, &bucket, err) != 0)
		return -1;
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		struct bucket_grants listed;
		if (bucket_grant_list(
			    store, bucket.id, sources[i], exchange->arena, &listed, err) != 0)
			return -1;
		*out = *out || policy_document_is_public(listed.grants, listed.count);
	}
	return 0;
}
