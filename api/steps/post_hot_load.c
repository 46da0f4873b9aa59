#include "api/steps/post_hot_load.h"

#include "api/steps/hot_load_call.h"
#include "api/steps/hot_load_request.h"
#include "api/steps/run_wait.h"
#include "api/steps/steps_request.h"
#include "storage/buckets/account.h"
#include "storage/runs/hot_load.h"

enum next post_hot_load_begin(struct exchange *exchange)
{
	struct error err = {0};
	if (hot_load_call_open(exchange, PERMISSION_WRITE, &err) == NULL)
		return exchange_fail(exchange, &err);
	return exchange_accept_small(exchange, HOT_LOAD_REQUEST_MAX_BYTES);
}

enum next post_hot_load_finish(struct exchange *exchange)
{
	struct hot_load_request request;
	struct error err = {0};
	const struct hot_load_call *const call =
		hot_load_call_open(exchange, PERMISSION_WRITE, &err);
	if (call == NULL ||
		hot_load_request_parse(exchange_body(exchange), exchange->arena, &request, &err) !=
			0 ||
		hot_load_check_identity(request.identity, &err) != 0)
		return exchange_fail(exchange, &err);
	const struct hot_load_params params = {.bucket = call->bucket,
		.run = call->run,
		.deployment = call->deployment,
		.identity = request.identity,
		.has_base = request.is_incremental,
		.base = request.previous};
	return run_wait_for(exchange,
		hot_load_start(exchange->context->store, &params, exchange_wake_owner, exchange));
}

enum next post_hot_load_resume(struct exchange *exchange)
{
	struct run_outcome outcome;
	struct error err = {0};
	if (run_wait_outcome(exchange, &outcome, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_reply_body(exchange, 200, "application/json", span_text("{}"));
}

enum next hot_load_hint_begin(struct exchange *exchange)
{
	return exchange_reply_body(exchange, 200, "application/json", span_text("{}"));
}
