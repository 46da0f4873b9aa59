#include "api/hub/handlers.h"

#include "api/exchange/json_reply.h"
#include "api/hub/hub_body.h"
#include "api/hub/hub_bucket.h"
#include "api/hub/hub_visibility.h"
#include "storage/upkeep/bucket_delete.h"

enum { REPLY_MAX_BYTES = 16 * 1024 };

static int read_settings(struct exchange *exchange, struct hub_visibility *out, struct error *err);

enum next hub_info_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct bucket bucket;
	struct hub_bucket described;
	struct buffer body;
	struct json_writer json;
	if (bucket_find(exchange->context->store, exchange_bucket(exchange), exchange->arena,
		    &bucket, &err) != 0 ||
		hub_bucket_describe(exchange, &bucket, &described, &err) != 0)
		return exchange_fail(exchange, &err);
	buffer_init(&body, REPLY_MAX_BYTES);
	json_writer_init(&json, &body);
	hub_bucket_print(exchange, &described, &json);
	return json_reply(exchange, 200, &body);
}

enum next hub_delete_begin(struct exchange *exchange)
{
	return exchange_await(
		exchange, bucket_drop_call(exchange->context->store, exchange_bucket(exchange)));
}

enum next hub_settings_finish(struct exchange *exchange)
{
	struct hub_visibility visibility;
	struct bucket_grant grants[1];
	struct error err = {0};
	if (read_settings(exchange, &visibility, &err) != 0)
		return exchange_fail(exchange, &err);
	if (!visibility.given)
		return hub_info_begin(exchange);
	const struct bucket_edit edit = hub_visibility_edit(visibility.is_public, grants);
	return exchange_await(exchange,
		bucket_edit_call(exchange->context->store, exchange_bucket(exchange), &edit));
}

enum next hub_settings_resume(struct exchange *exchange)
{
	struct error err = {0};
	ASSERT(exchange->call != NULL);
	return call_outcome(exchange->call, &err) != 0 ? exchange_fail(exchange, &err)
						       : hub_info_begin(exchange);
}

static int read_settings(struct exchange *exchange, struct hub_visibility *out, struct error *err)
{
	struct json_node *request;
	if (hub_body_parse(exchange, &request, err) != 0)
		return -1;
	const int result = hub_visibility_read(request, out, err);
	json_node_free(request);
	if (result == 0 && out->given)
		return hub_visibility_check(
			exchange, exchange_bucket(exchange), out->is_public, err);
	return result;
}
