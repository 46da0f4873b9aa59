#include "api/steps/handlers.h"

#include "api/steps/steps_request.h"

enum next delete_run_begin(struct exchange *exchange)
{
	const struct run_ref run = steps_request_run(exchange);
	return exchange_await(exchange, run_delete_call(exchange->context->store, &run));
}
