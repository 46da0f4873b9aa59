#include "api/s3/object/object_acl.h"

#include "api/s3/bucket/bucket_acl.h"
#include "api/s3/object/object_request.h"
#include "api/s3/request/acl.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/request/xml_body.h"
#include "storage/objects/object_change.h"
#include "storage/versions/object.h"

enum { BODY_MAX_BYTES = 64 * 1024 };

struct object_acl { /* the exchange's state; freed by `release` */
	struct object_change *change;
};

static void release(struct exchange *exchange)
{
	struct object_acl *const state = exchange->state;
	object_change_free(state->change);
}

enum next get_object_acl_begin(struct exchange *exchange)
{
	struct store *const store = exchange->context->store;
	struct error err = {0};
	struct version_ref ref;
	struct bucket bucket;
	struct object object;
	enum next next;
	if (!object_request_version(exchange, &ref, &next))
		return next;
	if (s3_request_check_owner(exchange, &err) != 0 ||
		bucket_find(store, s3_request_bucket(exchange), exchange->arena, &bucket, &err) !=
			0 ||
		object_request_find(exchange, &ref, &object, &err) != 0)
		return exchange_fail(exchange, &err);
	object_request_add_version(exchange, &object);
	return acl_reply(exchange, bucket.owner, object.acl);
}

enum next put_object_acl_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct version_ref ref;
	enum next next;
	if (!object_request_version(exchange, &ref, &next))
		return next;
	if (s3_request_check_owner(exchange, &err) != 0)
		return exchange_fail(exchange, &err);
	return xml_body_accept(exchange, BODY_MAX_BYTES);
}

enum next put_object_acl_finish(struct exchange *exchange)
{
	struct store *const store = exchange->context->store;
	struct object_change_params params = {.bucket = s3_request_bucket(exchange),
		.bucket_id = exchange->bucket_id,
		.key = s3_request_key(exchange),
		.sets_acl = true,
		.done = exchange_wake_owner,
		.owner = exchange};
	struct error err = {0};
	struct bucket bucket;
	struct span xml;
	enum next next;
	if (!xml_body_check(exchange, &xml, &next) ||
		!object_request_version(exchange, &params.ref, &next))
		return next;
	if (bucket_find(store, params.bucket, exchange->arena, &bucket, &err) != 0)
		return exchange_fail(exchange, &err);
	if (bucket_acl_read(exchange, xml, bucket.owner, &params.acl, &err) != 0 ||
		(params.acl != ACL_PRIVATE && bucket_acl_check_public(exchange, &err) != 0))
		return acl_fail(exchange, &err);
	struct object_acl *const state = arena_take(exchange->arena, sizeof(*state));
	ASSERT(state != NULL); /* the body is capped far below the arena */
	exchange->state = state;
	exchange->release = release;
	state->change = object_change_start(store, &params);
	return NEXT_WAIT;
}

enum next put_object_acl_resume(struct exchange *exchange)
{
	const struct object_acl *const state = exchange->state;
	struct error err = {0};
	struct object object;
	if (object_change_outcome(state->change, &object, &err) != 0)
		return exchange_fail(exchange, &err);
	object_request_add_version(exchange, &object);
	return exchange_reply_empty(exchange, 200);
}
