#include "api/steps/handlers.h"

#include "api/steps/steps_request.h"

enum next run_status_begin(struct exchange *exchange)
{
	const struct run_ref ref = steps_request_run(exchange);
	struct run_message run;
	struct error err = {0};
	if (run_find(exchange->context->store, &ref, exchange->arena, &run, &err) != 0)
		return exchange_fail(exchange, &err);
	steps_request_hide_webhook(exchange, &run);
	return steps_request_reply_run(exchange, &run);
}
