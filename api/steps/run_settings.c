#include "api/steps/run_settings.h"

#include "api/steps/run_wait.h"
#include "api/steps/steps_request.h"

enum next run_settings_begin(struct exchange *const exchange)
{
	return exchange_accept_small(exchange, RUN_SETTINGS_MAX_BYTES);
}

enum next run_settings_finish(struct exchange *const exchange)
{
	return run_wait_for(exchange, run_settings_start(exchange->context->store, steps_request_bucket(exchange), steps_request_run(exchange),
		exchange_body(exchange), exchange_wake_owner, exchange));
}

enum next run_settings_resume(struct exchange *const exchange)
{
	struct run_outcome outcome;
	struct error err = {0};
	if (run_wait_outcome(exchange, &outcome, &err) != 0)
		return exchange_fail(exchange, &err);
	return steps_request_reply_run(exchange, &outcome.run);
}
