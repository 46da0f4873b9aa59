#include "api/steps/handlers.h"

#include "api/steps/steps_request.h"

enum next delete_step_begin(struct exchange *exchange)
{
	const struct run_ref run = steps_request_run(exchange);
	uint64_t step;
	enum next next;
	if (!steps_request_step(exchange, &step, &next))
		return next;
	return exchange_await(exchange, run_collect_call(exchange->context->store, &run, step));
}
