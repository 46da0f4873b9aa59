#include "storage/runs/rollback.h"

#include "api/steps/handlers.h"
#include "api/steps/steps_request.h"

enum next put_rollback_begin(struct exchange *exchange)
{
	return exchange_accept_small(exchange, ROLLBACK_MESSAGE_MAX_BYTES);
}

enum next put_rollback_finish(struct exchange *exchange)
{
	const struct run_ref run = steps_request_run(exchange);
	struct rollback_message rollback;
	struct error err = {0};
	if (rollback_message_parse(exchange_body(exchange), &rollback, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_await(
		exchange, rollback_begin_call(exchange->context->store, &run, rollback.step));
}

enum next delete_rollback_begin(struct exchange *exchange)
{
	const struct run_ref run = steps_request_run(exchange);
	return exchange_await(exchange, rollback_end_call(exchange->context->store, &run));
}

enum next rollback_resume(struct exchange *exchange)
{
	struct error err = {0};
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	return steps_request_reply_run(exchange, rollback_result(exchange->call));
}
