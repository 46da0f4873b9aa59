/* The long poll. Each look reads the watch's generation before the catalog, so a step that is
 * published between the two wakes the waiter at once. A waiting exchange occupies no thread and no
 * reader of the catalog, only the struct below. */
#include "api/steps/handlers.h"

#include "api/exchange/long_wait.h"
#include "api/steps/steps_error.h"
#include "api/steps/steps_request.h"
#include "api/steps/version_bounds.h"

enum { WAIT_MAX_SECONDS = 60 };

struct latest_step { /* the exchange's state */
	struct long_wait wait;
	struct run_latest_params params;
	struct version_bounds bounds;
};

static enum next look(struct exchange *exchange);
static int find(struct exchange *exchange, struct step_message *out, uint64_t *out_anchor,
	struct error *err);
static enum next give_up(struct exchange *exchange, struct error *err, bool stopping);
static bool is_bounded(struct exchange *exchange, struct error *err);
static enum next reply_nothing(struct exchange *exchange, bool stopping);

enum next latest_step_begin(struct exchange *exchange)
{
	struct latest_step *const state = arena_take(exchange->arena, sizeof(*state));
	struct span of_head;
	uint64_t wait_seconds = 0;
	bool has_wait;
	enum next next;
	ASSERT(state != NULL);
	struct run_latest_params *const params = &state->params;
	params->run = steps_request_run(exchange);
	if (!steps_request_number(exchange, "after", &params->has_after, &params->after, &next) ||
		!steps_request_number(exchange, "wait", &has_wait, &wait_seconds, &next) ||
		!version_bounds_read(exchange, &state->bounds, &next))
		return next;
	const struct version_bounds *const bounds = &state->bounds;
	if (bounds->has_exact && params->has_after)
		return steps_error_invalid(
			exchange, "exact_version", "must not be given with after");
	params->least = bounds->has_min ? bounds->min : 0;
	params->of_head =
		exchange_query(exchange, "head", &of_head) && span_equal_text(of_head, "true");
	if (wait_seconds > WAIT_MAX_SECONDS)
		wait_seconds = WAIT_MAX_SECONDS;
	long_wait_init(&state->wait, exchange, exchange->context->shares.waits,
		(int64_t)wait_seconds * 1000);
	exchange->state = state;
	return look(exchange);
}

enum next latest_step_resume(struct exchange *exchange)
{
	return look(exchange);
}

static enum next look(struct exchange *exchange)
{
	struct latest_step *const state = exchange->state;
	ASSERT(state != NULL);
	struct step_watch *const watch = store_step_watch(exchange->context->store);
	const struct span bucket = state->params.run.bucket.name;
	const struct span run = state->params.run.name;
	struct step_message step;
	struct error err = {0};
	uint64_t anchor;

	const uint64_t seen = step_watch_generation(watch, bucket, run);
	if (find(exchange, &step, &anchor, &err) == 0)
		return steps_request_reply_step(exchange, 200, &step, false);
	if (err.kind != ERROR_NOT_READY)
		return steps_error_fail(exchange, &err, anchor);
	if (long_wait_left_ms(&state->wait) == 0)
		return give_up(exchange, &err, long_wait_is_stopping(&state->wait));
	return long_wait_for(&state->wait, bucket, run, seen);
}

/* Finds the step that the reader waits for: the one to serve, unless it is `after` or too low,
 * or the one of `exact_version`. Fails with not_ready until it exists. */
static int find(struct exchange *exchange, struct step_message *out, uint64_t *out_anchor,
	struct error *err)
{
	const struct latest_step *const state = exchange->state;
	const struct run_latest_params *const params = &state->params;
	struct store *const store = exchange->context->store;
	*out_anchor = UINT64_MAX;
	if (!state->bounds.has_exact)
		return run_find_latest(store, params, exchange->arena, out, err);
	const struct run_step_params exact = {.run = params->run, .step = state->bounds.exact};
	if (run_find_step(store, &exact, exchange->arena, out, out_anchor, err) != 0) {
		version_bounds_translate(&state->bounds, err);
		return -1;
	}
	if (out->verified == STEP_PROOF_FAILED)
		return error_set(err, ERROR_STEP_FAILED,
			"The proof of step %llu failed: its content differs from what was published. Take another step.",
			(unsigned long long)out->step);
	return 0;
}

/* The wait has ended without a step. That is not an error unless the request has version bounds
 * that are not met. */
static enum next give_up(struct exchange *exchange, struct error *err, bool stopping)
{
	const struct latest_step *const state = exchange->state;
	struct error crowded = {0};
	if (long_wait_check(&state->wait, &crowded) != 0)
		return exchange_fail(exchange, &crowded);
	if (stopping || is_bounded(exchange, err))
		return reply_nothing(exchange, stopping);
	return version_bounds_fail(exchange, err, UINT64_MAX);
}

/* Whether the step that is there meets the bounds, and is merely not newer than `after`. */
static bool is_bounded(struct exchange *exchange, struct error *err)
{
	const struct latest_step *const state = exchange->state;
	struct run_latest_params any = state->params;
	struct step_message step;
	any.has_after = false;
	if (state->bounds.has_exact)
		return false;
	return !state->bounds.has_min ||
		run_find_latest(exchange->context->store, &any, exchange->arena, &step, err) == 0;
}

/* A server that is stopping also closes the connection, so that the client's next poll goes to its
 * successor. */
static enum next reply_nothing(struct exchange *exchange, bool stopping)
{
	if (stopping)
		exchange_add_header(exchange, "Connection", "close");
	return exchange_reply_empty(exchange, 204);
}
