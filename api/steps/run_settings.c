#include "api/steps/handlers.h"

#include "api/auth/keyring.h"
#include "api/steps/steps_request.h"
#include "storage/runs/run.h"

static int check_prefixes(struct exchange *exchange, struct error *err);
static int check_prefix(
	const struct exchange *exchange, const char *name, const char *setting, struct error *err);

enum next run_settings_begin(struct exchange *exchange)
{
	return exchange_accept_small(exchange, RUN_SETTINGS_MAX_BYTES);
}

enum next run_settings_finish(struct exchange *exchange)
{
	const struct run_ref run = steps_request_run(exchange);
	struct error err = {0};
	if (run_check_name(run.name, &err) != 0 || check_prefixes(exchange, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_await(exchange,
		run_settings_call(exchange->context->store, &run, exchange_body(exchange)));
}

enum next run_settings_resume(struct exchange *exchange)
{
	struct error err = {0};
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	return steps_request_reply_run(exchange, run_settings_result(exchange->call));
}

static int check_prefixes(struct exchange *exchange, struct error *err)
{
	struct run_settings settings = run_settings_default();
	if (run_settings_parse(&settings, exchange_body(exchange), true, err) != 0)
		return -1;
	if (check_prefix(exchange, "adopt_prefix", settings.adopt_prefix, err) != 0)
		return -1;
	return check_prefix(exchange, "hot_load_prefix", settings.hot_load_prefix, err);
}

/* Objects below such a prefix become part of the run, and every reader of the run may read them. So
 * the prefix must lie in the run, or the caller must be allowed to read all of it. */
static int check_prefix(
	const struct exchange *exchange, const char *name, const char *setting, struct error *err)
{
	/* With an empty owner, a key without grants may read everything. That is right because the
	 * access rule of the route let it in as a key of the bucket's owner. */
	static const struct span owner = {NULL, 0};
	char text[2 * RUN_PREFIX_MAX_BYTES];
	const struct span run = steps_request_run(exchange).name;
	const struct span prefix = span_of(text, run_settings_prefix(setting, run, text));
	if (span_starts(prefix, run) &&
		span_starts(span_slice(prefix, run.len, prefix.len), span_text("/")))
		return 0;
	if (principal_allows(exchange->principal, exchange_bucket(exchange).name, owner, prefix,
		    PERMISSION_READ))
		return 0;
	return error_set(err, ERROR_DENIED,
		"The setting \"%s\" names keys outside the run, and you may not read all of them.",
		name);
}
