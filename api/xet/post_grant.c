#include "api/xet/handlers.h"

#include "api/xet/xorb_request.h"
#include "base/format/json_node.h"
#include "storage/xet/xorb_promise.h"

enum { GRANT_BODY_MAX_BYTES = 16 * 1024 };

static int check_body(struct span body, struct error *err);

enum next post_grant_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct chunk_id hash;
	if (xorb_request_hash(exchange, &hash, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_accept_small(exchange, GRANT_BODY_MAX_BYTES);
}

enum next post_grant_finish(struct exchange *exchange)
{
	struct error err = {0};
	struct chunk_id hash;
	if (check_body(exchange_body(exchange), &err) != 0 ||
		xorb_request_hash(exchange, &hash, &err) != 0)
		return exchange_fail(exchange, &err);
	struct call *const call = xorb_promise_renew_call(exchange->context->store, &hash, &err);
	return call == NULL ? exchange_fail(exchange, &err) : exchange_await(exchange, call);
}

enum next post_grant_resume(struct exchange *exchange)
{
	struct error err = {0};
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_reply_body(exchange, 200, "application/json", span_text("{}"));
}

/* The length and the checksum in the body are ignored: they tell nothing about the stored xorb,
 * which was verified. */
static int check_body(struct span body, struct error *err)
{
	struct json_node *const root = json_node_parse(body, "the request for a grant", err);
	if (root == NULL)
		return -1;
	const bool is_object = json_node_is_object(root);
	json_node_free(root);
	return is_object
		? 0
		: error_set(err, ERROR_INVALID, "The request for a grant must be a JSON object.");
}
