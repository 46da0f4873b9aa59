#include "api/steps/delete_step.h"

#include "api/steps/run_wait.h"
#include "api/steps/steps_request.h"

enum next delete_step_begin(struct exchange *exchange)
{
	uint64_t step;
	enum next next;
	if (!steps_request_step(exchange, &step, &next))
		return next;
	return run_wait_for(exchange,
		run_collect_start(exchange->context->store, steps_request_bucket(exchange),
			steps_request_run(exchange), step, exchange_wake_owner, exchange));
}
