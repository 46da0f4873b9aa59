#include "api/steps/open_run.h"

#include "api/steps/run_request.h"
#include "api/steps/run_wait.h"
#include "api/steps/steps_request.h"

enum next open_run_begin(struct exchange *const exchange)
{
	struct error err = {0};
	if (run_check_name(steps_request_run(exchange), &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_accept_small(exchange, RUN_REQUEST_MAX_BYTES);
}

enum next open_run_finish(struct exchange *const exchange)
{
	struct run_request request;
	struct error err = {0};
	if (run_request_parse(exchange_body(exchange), &request, &err) != 0)
		return exchange_fail(exchange, &err);
	const struct run_open_params params = {.bucket = steps_request_bucket(exchange), .run = steps_request_run(exchange),
		.has_keep_steps = request.has_keep_steps, .keep_steps = request.keep_steps, .has_expected_epoch = request.has_expected_epoch,
		.expected_epoch = request.expected_epoch};
	return run_wait_for(exchange, run_open_start(exchange->context->store, &params, exchange_wake_owner, exchange));
}

enum next open_run_resume(struct exchange *const exchange)
{
	struct run_outcome outcome;
	struct error err = {0};
	if (run_wait_outcome(exchange, &outcome, &err) != 0)
		return exchange_fail(exchange, &err);
	return steps_request_reply_run(exchange, &outcome.run);
}
