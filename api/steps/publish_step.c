#include "api/steps/publish_step.h"

#include <inttypes.h>

#include "api/keyring.h"
#include "api/steps/run_wait.h"
#include "api/steps/steps_error.h"
#include "api/steps/steps_request.h"

enum next publish_step_begin(struct exchange *const exchange)
{
	uint64_t step;
	enum next next;
	if (!steps_request_step(exchange, &step, &next))
		return next;
	return exchange_accept_small(exchange, STEP_MESSAGE_MAX_BYTES);
}

/* Readers of the run get the bytes of what it names, and a refusal tells their digest. So whoever publishes names keys of the run, which
 * the route lets him write, or keys that he may read. */
static int check_keys(struct exchange *const exchange, const struct step_message *const step, struct error *const err)
{
	static const struct span owner = {NULL, 0}; /* a key without grants was let in as the owner's */
	const struct span bucket = steps_request_bucket(exchange);
	const struct span run = steps_request_run(exchange);
	for (size_t f = 0; f < step->form_count; f++)
		for (size_t i = 0; i < step->forms[f].object_count; i++) {
			const struct span key = step->forms[f].objects[i].key;
			const struct span behind = span_slice(key, run.len, key.len);
			if (span_starts(key, run) && span_starts(behind, span_text("/")))
				continue;
			if (!principal_allows(exchange->principal, bucket, owner, key, PERMISSION_READ))
				return error_set(err, ERROR_DENIED, "The step names the key '%.*s', which is not the run's and which you may not read.",
					(int)span_slice(key, 0, 120).len, (const char *)key.data);
		}
	return 0;
}

enum next publish_step_finish(struct exchange *const exchange)
{
	struct step_message message;
	struct error err = {0};
	uint64_t step;
	enum next next;
	if (!steps_request_step(exchange, &step, &next))
		return next;
	if (step_message_parse(exchange_body(exchange), exchange->arena, &message, &err) != 0)
		return exchange_fail(exchange, &err);
	if (message.step != step) {
		error_set(&err, ERROR_INVALID, "The manifest is of step %" PRIu64 ", but the path names step %" PRIu64 ".", message.step, step);
		return exchange_fail(exchange, &err);
	}
	if (check_keys(exchange, &message, &err) != 0)
		return exchange_fail(exchange, &err);
	return run_wait_for(exchange, run_publish_start(exchange->context->store, steps_request_bucket(exchange), steps_request_run(exchange),
		&message, exchange_wake_owner, exchange));
}

/* The reply is the step as it now stands in the catalog, not as it was sent. */
enum next publish_step_resume(struct exchange *const exchange)
{
	struct run_outcome outcome;
	struct step_message published;
	struct error err = {0};
	uint64_t step;
	uint64_t anchor = UINT64_MAX;
	enum next next;
	if (!steps_request_step(exchange, &step, &next))
		return next;
	if (run_wait_outcome(exchange, &outcome, &err) != 0)
		return exchange_fail(exchange, &err);
	if (run_find_step(exchange->context->store, steps_request_bucket(exchange), steps_request_run(exchange), step, false, exchange->arena,
		    &published, &anchor, &err) != 0)
		return steps_error_fail(exchange, &err, anchor);
	published.anchor_due = outcome.run.anchor_due;
	return steps_request_reply_step(exchange, outcome.already ? 200 : 201, &published, false);
}
