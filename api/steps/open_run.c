#include "api/steps/handlers.h"

#include "api/auth/keyring.h"
#include "api/steps/run_request.h"
#include "api/steps/steps_request.h"
#include "api/steps/version_bounds.h"
#include "storage/step_jobs/run_fork.h"

static enum next fork_run(struct exchange *exchange, const struct run_request *request,
	const struct run_open_params *open);

enum next open_run_begin(struct exchange *exchange)
{
	struct error err = {0};
	if (run_check_name(steps_request_run(exchange).name, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_accept_small(exchange, RUN_REQUEST_MAX_BYTES);
}

enum next open_run_finish(struct exchange *exchange)
{
	struct run_request request;
	struct error err = {0};
	if (run_request_parse(exchange_body(exchange), exchange->arena, &request, &err) != 0)
		return exchange_fail(exchange, &err);
	const struct run_open_params params = {.run = steps_request_run(exchange),
		.has_keep_steps = request.has_keep_steps,
		.keep_steps = request.keep_steps,
		.has_expected_epoch = request.has_expected_epoch,
		.expected_epoch = request.expected_epoch};
	if (request.has_fork)
		return fork_run(exchange, &request, &params);
	return exchange_await(exchange, run_open_call(exchange->context->store, &params));
}

enum next open_run_resume(struct exchange *exchange)
{
	struct error err = {0};
	if (call_outcome(exchange->call, &err) != 0)
		return version_bounds_fail(exchange, &err, UINT64_MAX);
	return steps_request_reply_run(exchange, run_open_result(exchange->call));
}

/* A fork contains bytes of the old run, so the caller must be allowed to read that run. */
static enum next fork_run(struct exchange *exchange, const struct run_request *request,
	const struct run_open_params *open)
{
	/* With an empty owner, a key without grants may read everything. That is right because the
	 * access rule of the route let it in as a key of the bucket's owner. */
	static const struct span owner = {NULL, 0};
	const struct run_fork_params params = {
		.open = *open, .from = request->fork_run, .step = request->fork_step};
	struct error err = {0};
	if (run_check_name(request->fork_run, &err) != 0)
		return exchange_fail(exchange, &err);
	const char *const folder = arena_format(exchange->arena, "%.*s/",
		(int)request->fork_run.len, (const char *)request->fork_run.data);
	if (!principal_allows(exchange->principal, open->run.bucket.name, owner, span_text(folder),
		    PERMISSION_READ)) {
		error_set(&err, ERROR_DENIED,
			"You may not read the run '%.*s', which the request would fork.",
			(int)request->fork_run.len, (const char *)request->fork_run.data);
		return exchange_fail(exchange, &err);
	}
	return exchange_await(exchange, run_fork_call(exchange->context->store, &params));
}
