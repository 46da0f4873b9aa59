#include "api/hub/handlers.h"

#include "api/exchange/base_url.h"
#include "api/exchange/json_reply.h"
#include "api/hub/hub_body.h"
#include "api/hub/hub_bucket.h"
#include "api/hub/hub_visibility.h"

enum { REPLY_MAX_BYTES = 16 * 1024 };

static int read_claim(struct exchange *exchange, struct hub_claim *out, struct error *err);
static int read_request(struct exchange *exchange, bool *out_public, struct error *err);
static enum next reply(
	struct exchange *exchange, int status, struct span bucket, struct span problem);

enum next hub_create_begin(struct exchange *exchange)
{
	struct hub_claim claim;
	struct error err = {0};
	return read_claim(exchange, &claim, &err) != 0 ? exchange_fail(exchange, &err)
						       : hub_body_begin(exchange);
}

enum next hub_create_finish(struct exchange *exchange)
{
	struct bucket_grant grants[1];
	struct hub_claim claim;
	struct error err = {0};
	bool is_public = false;
	if (read_claim(exchange, &claim, &err) != 0 ||
		read_request(exchange, &is_public, &err) != 0)
		return exchange_fail(exchange, &err);
	const struct bucket_edit edit = hub_visibility_edit(is_public, grants);
	return exchange_await(exchange,
		bucket_create_call(exchange->context->store, claim.bucket, claim.account, &edit));
}

enum next hub_create_resume(struct exchange *exchange)
{
	static const struct span none = {NULL, 0};
	struct hub_claim claim;
	struct error err = {0};
	ASSERT(exchange->call != NULL);
	if (read_claim(exchange, &claim, &err) != 0)
		return exchange_fail(exchange, &err);
	if (call_outcome(exchange->call, &err) == 0)
		return reply(exchange, 200, claim.bucket, none);
	if (err.kind != ERROR_BUCKET_OWNED && err.kind != ERROR_BUCKET_TAKEN)
		return exchange_fail(exchange, &err);
	const char *const text = json_reply_without_stop(exchange, err.text);
	exchange_add_header(exchange, "X-Error-Message", json_reply_header_text(exchange, text));
	return reply(exchange, 409, claim.bucket, span_text(text));
}

static int read_claim(struct exchange *exchange, struct hub_claim *out, struct error *err)
{
	ASSERT(exchange->parameter_count == 2);
	return hub_bucket_claim(
		exchange, exchange->parameters[0], exchange->parameters[1], out, err);
}

static int read_request(struct exchange *exchange, bool *out_public, struct error *err)
{
	struct hub_visibility visibility;
	struct json_node *request;
	if (hub_body_parse(exchange, &request, err) != 0)
		return -1;
	const int result = hub_visibility_read(request, &visibility, err);
	json_node_free(request);
	*out_public =
		visibility.given ? visibility.is_public : exchange->context->hub_buckets_public;
	return result;
}

/* `problem` says why the bucket was not made; empty: it was made. */
static enum next reply(
	struct exchange *exchange, int status, struct span bucket, struct span problem)
{
	const char *const id = hub_bucket_id(exchange, bucket);
	const char *const url =
		arena_format(exchange->arena, "%s/buckets/%s", base_url(exchange), id);
	struct buffer body;
	struct json_writer json;
	buffer_init(&body, REPLY_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_object(&json, NULL);
	if (problem.len > 0)
		json_writer_text(&json, "error", problem);
	json_writer_text(&json, "url", span_text(url));
	json_writer_text(&json, "name", span_text(id));
	json_writer_text(&json, "id", span_text(id));
	json_writer_end(&json, '}');
	return json_reply(exchange, status, &body);
}
