#include "api/steps/handlers.h"

#include <inttypes.h>

#include "api/steps/publish_keys.h"
#include "api/steps/steps_error.h"
#include "api/steps/steps_request.h"

enum next publish_step_begin(struct exchange *exchange)
{
	uint64_t step;
	enum next next;
	if (!steps_request_step(exchange, &step, &next))
		return next;
	return exchange_accept_small(exchange, STEP_MESSAGE_MAX_BYTES);
}

enum next publish_step_finish(struct exchange *exchange)
{
	const struct run_ref run = steps_request_run(exchange);
	struct step_message message;
	struct error err = {0};
	uint64_t step;
	enum next next;
	if (!steps_request_step(exchange, &step, &next))
		return next;
	if (step_message_parse(exchange_body(exchange), exchange->arena, &message, &err) != 0)
		return exchange_fail(exchange, &err);
	if (message.step != step) {
		error_set(&err, ERROR_INVALID,
			"The manifest is of step %" PRIu64 ", but the path names step %" PRIu64 ".",
			message.step, step);
		return exchange_fail(exchange, &err);
	}
	if (publish_keys_check(exchange, &message, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_await(exchange, run_publish_call(exchange->context->store, &run, &message));
}

/* Replies with the step as the catalog has it, not as it was sent. */
enum next publish_step_resume(struct exchange *exchange)
{
	struct run_step_params params = {.run = steps_request_run(exchange)};
	struct step_message published;
	struct error err = {0};
	uint64_t anchor = UINT64_MAX;
	bool already;
	enum next next;
	if (!steps_request_step(exchange, &params.step, &next))
		return next;
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	if (run_find_step(exchange->context->store, &params, exchange->arena, &published, &anchor,
		    &err) != 0)
		return steps_error_fail(exchange, &err, anchor);
	const struct run_message *const after = run_publish_result(exchange->call, &already);
	published.anchor_due = after->anchor_due;
	published.rollback = after->rollback;
	return steps_request_reply_step(exchange, already ? 200 : 201, &published, false);
}
