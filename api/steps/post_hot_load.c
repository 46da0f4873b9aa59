#include "api/steps/handlers.h"

#include "api/steps/hot_load_run.h"
#include "api/steps/hot_load_request.h"
#include "api/steps/steps_request.h"
#include "storage/buckets/account.h"
#include "storage/runs/hot_load.h"

enum next post_hot_load_begin(struct exchange *exchange)
{
	struct error err = {0};
	if (hot_load_run_find(exchange, PERMISSION_WRITE, &err) == NULL)
		return exchange_fail(exchange, &err);
	return exchange_accept_small(exchange, HOT_LOAD_REQUEST_MAX_BYTES);
}

enum next post_hot_load_finish(struct exchange *exchange)
{
	struct hot_load_request request;
	struct error err = {0};
	const struct hot_load_run *const found =
		hot_load_run_find(exchange, PERMISSION_WRITE, &err);
	if (found == NULL ||
		hot_load_request_parse(exchange_body(exchange), exchange->arena, &request, &err) !=
			0 ||
		hot_load_check_identity(request.identity, &err) != 0)
		return exchange_fail(exchange, &err);
	const struct hot_load_params params = {.run = found->run,
		.deployment = found->deployment,
		.identity = request.identity,
		.has_base = request.is_incremental,
		.base = request.previous};
	return exchange_await(exchange, hot_load_call(exchange->context->store, &params));
}

enum next post_hot_load_resume(struct exchange *exchange)
{
	struct error err = {0};
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_reply_body(exchange, 200, "application/json", span_text("{}"));
}

enum next hot_load_hint_begin(struct exchange *exchange)
{
	return exchange_reply_body(exchange, 200, "application/json", span_text("{}"));
}
