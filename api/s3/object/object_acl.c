#include "api/s3/object/handlers.h"

#include "api/s3/bucket/bucket_acl.h"
#include "api/s3/object/object_request.h"
#include "api/s3/request/acl.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/request/xml_body.h"
#include "storage/objects/object_change.h"
#include "storage/versions/object.h"

enum { BODY_MAX_BYTES = 64 * 1024 };

enum next get_object_acl_begin(struct exchange *exchange)
{
	struct store *const store = exchange->context->store;
	struct error err = {0};
	struct object_ref ref;
	struct bucket bucket;
	struct object object;
	enum next next;
	if (!object_request_ref(exchange, &ref, &next))
		return next;
	if (s3_request_check_owner(exchange, &err) != 0 ||
		bucket_find(store, ref.bucket, exchange->arena, &bucket, &err) != 0 ||
		object_request_find(exchange, &ref, &object, &err) != 0)
		return exchange_fail(exchange, &err);
	object_request_add_version(exchange, &object);
	return acl_reply(exchange, bucket.owner, object.acl);
}

enum next put_object_acl_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct object_ref ref;
	enum next next;
	if (!object_request_ref(exchange, &ref, &next))
		return next;
	if (s3_request_check_owner(exchange, &err) != 0)
		return exchange_fail(exchange, &err);
	return xml_body_accept(exchange, BODY_MAX_BYTES);
}

enum next put_object_acl_finish(struct exchange *exchange)
{
	struct store *const store = exchange->context->store;
	struct object_change_params params = {.sets_acl = true};
	struct error err = {0};
	struct bucket bucket;
	struct span xml;
	enum next next;
	if (!xml_body_check(exchange, &xml, &next) ||
		!object_request_ref(exchange, &params.object, &next))
		return next;
	if (bucket_find(store, params.object.bucket, exchange->arena, &bucket, &err) != 0)
		return exchange_fail(exchange, &err);
	if (bucket_acl_read(exchange, xml, bucket.owner, &params.acl, &err) != 0 ||
		(params.acl != ACL_PRIVATE && bucket_acl_check_public(exchange, &err) != 0))
		return acl_fail(exchange, &err);
	return exchange_await(exchange, object_change_call(store, &params));
}

enum next put_object_acl_resume(struct exchange *exchange)
{
	struct error err = {0};
	struct object object;
	ASSERT(exchange->call != NULL);
	if (object_change_result(exchange->call, &object, &err) != 0)
		return exchange_fail(exchange, &err);
	object_request_add_version(exchange, &object);
	return exchange_reply_empty(exchange, 200);
}
