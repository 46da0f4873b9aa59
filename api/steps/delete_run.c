#include "api/steps/delete_run.h"

#include "api/steps/run_wait.h"
#include "api/steps/steps_request.h"

enum next delete_run_begin(struct exchange *exchange)
{
	return run_wait_for(exchange,
		run_delete_start(exchange->context->store, steps_request_bucket(exchange),
			steps_request_run(exchange), exchange_wake_owner, exchange));
}
