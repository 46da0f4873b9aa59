/* Short paths are found on the reactor, long ones on a helper. With `wait`, the plan asks for a
 * direct fold if that would save much, and the reply waits until the fold is made or refused. A
 * waiting exchange occupies no thread and no reader of the catalog.
 *
 *   look --short--> wait_or_reply --no fold due--> reply
 *   look --long--> helper --wake--> wait_or_reply --fold due--> long wait --wake--> look */
#include "api/steps/handlers.h"

#include "api/exchange/long_wait.h"
#include "api/steps/step_url.h"
#include "api/steps/steps_error.h"
#include "api/steps/steps_request.h"
#include "api/steps/version_bounds.h"
#include "base/thread/helpers.h"

enum { BODY_MAX_BYTES = 32 * 1024 * 1024, WAIT_MAX_SECONDS = 60 };

struct step_path { /* the exchange's state */
	struct long_wait wait;
	struct helper_job job;
	struct helper_lane lane;
	struct exchange *exchange;
	struct run_path_params params;
	struct version_bounds bounds;
	struct span topic;
	uint64_t seen;   /* the watch's generation before the look at the catalog */
	bool is_planned; /* a helper has set the fields below, which are still unused */
	int result;
	struct path_message path;
	struct run_path_facts facts;
	struct error err;
};

static bool read_digest(
	struct exchange *exchange, struct run_path_params *params, enum next *out_next);
static bool read_want(
	struct exchange *exchange, struct run_path_params *params, enum next *out_next);
static bool read_wait(struct step_path *state, enum next *out_next);
static bool read_bounds(struct step_path *state, enum next *out_next);
static enum next fail(struct step_path *state);
static enum next look(struct step_path *state);
static void find_path(struct step_path *state);
static enum next wait_or_reply(struct step_path *state);
static enum next reply(struct step_path *state);
static void step_path_plan(struct helper_job *job);

enum next step_path_begin(struct exchange *exchange)
{
	struct step_path *const state = arena_take(exchange->arena, sizeof(*state));
	enum next next;
	ASSERT(state != NULL);
	state->exchange = exchange;
	struct run_path_params *const params = &state->params;
	*params = (struct run_path_params){.run = steps_request_run(exchange)};
	if (!steps_request_number(exchange, "have", &params->has_have, &params->have, &next) ||
		!read_digest(exchange, params, &next) || !read_want(exchange, params, &next) ||
		!read_wait(state, &next) || !read_bounds(state, &next))
		return next;
	state->facts.anchor = UINT64_MAX;
	if (version_bounds_check(exchange, &state->bounds, !params->want_latest, &state->err) != 0)
		return fail(state);
	state->topic = run_folds_topic(params->run.name, exchange->arena);
	exchange->state = state;
	return look(state);
}

enum next step_path_resume(struct exchange *exchange)
{
	struct step_path *const state = exchange->state;
	ASSERT(state != NULL);
	return state->is_planned ? wait_or_reply(state) : look(state);
}

static bool read_digest(
	struct exchange *exchange, struct run_path_params *params, enum next *out_next)
{
	struct span text;
	params->has_digest = exchange_query(exchange, "digest", &text);
	if (!params->has_digest)
		return true;
	if (params->has_have && digest128_parse(text, &params->digest))
		return true;
	*out_next = steps_error_invalid(
		exchange, "digest", "must be xxh3-128: and 32 hexadecimal digits, and needs have");
	return false;
}

static bool read_want(
	struct exchange *exchange, struct run_path_params *params, enum next *out_next)
{
	struct span text;
	params->want_latest =
		!exchange_query(exchange, "want", &text) || span_equal_text(text, "latest");
	if (params->want_latest || span_parse_u64(text, &params->want))
		return true;
	*out_next =
		steps_error_invalid(exchange, "want", "must be \"latest\" or the number of a step");
	return false;
}

static bool read_wait(struct step_path *state, enum next *out_next)
{
	uint64_t seconds = 0;
	bool has_wait;
	if (!steps_request_number(state->exchange, "wait", &has_wait, &seconds, out_next))
		return false;
	if (seconds > WAIT_MAX_SECONDS)
		seconds = WAIT_MAX_SECONDS;
	state->params.asks_fold = seconds > 0;
	long_wait_init(&state->wait, state->exchange, state->exchange->context->shares.waits,
		(int64_t)seconds * 1000);
	return true;
}

/* exact_version sets `want`, and must not contradict it. */
static bool read_bounds(struct step_path *state, enum next *out_next)
{
	struct run_path_params *const params = &state->params;
	if (!version_bounds_read(state->exchange, &state->bounds, out_next))
		return false;
	if (!state->bounds.has_exact)
		return true;
	if (!params->want_latest && params->want != state->bounds.exact) {
		*out_next = steps_error_invalid(
			state->exchange, "exact_version", "must be the step of want");
		return false;
	}
	params->want_latest = false;
	params->want = state->bounds.exact;
	return true;
}

static enum next fail(struct step_path *state)
{
	version_bounds_translate(&state->bounds, &state->err);
	return version_bounds_fail(state->exchange, &state->err, state->facts.anchor);
}

static enum next look(struct step_path *state)
{
	struct store *const store = state->exchange->context->store;
	state->seen = step_watch_generation(
		store_step_watch(store), state->params.run.bucket.name, state->topic);
	if (!state->params.may_take_long)
		find_path(state);
	if (!state->params.may_take_long && state->result <= 0)
		return wait_or_reply(state);
	state->job.run = step_path_plan;
	helpers_submit(store_helpers(store), &state->lane, &state->job);
	return NEXT_WAIT;
}

static void find_path(struct step_path *state)
{
	struct exchange *const exchange = state->exchange;
	state->err = (struct error){0};
	state->result = run_find_path(exchange->context->store, &state->params, exchange->arena,
		&state->path, &state->facts, &state->err);
	if (state->result == 0 && step_url_complete_path(exchange, &state->path, &state->err) != 0)
		state->result = -1;
}

static enum next wait_or_reply(struct step_path *state)
{
	struct error crowded = {0};
	state->is_planned = false;
	if (!state->facts.fold_is_due || long_wait_left_ms(&state->wait) == 0 ||
		long_wait_enter(&state->wait, &crowded) != 0)
		return reply(state);
	return long_wait_for(
		&state->wait, state->params.run.bucket.name, state->topic, state->seen);
}

static enum next reply(struct step_path *state)
{
	struct exchange *const exchange = state->exchange;
	if (state->result != 0)
		return fail(state);
	struct buffer body;
	buffer_init(&body, BODY_MAX_BYTES);
	path_message_print(&state->path, &body);
	exchange_add_header(exchange, "Cache-Control", "no-store");
	return steps_request_reply_json(exchange, 200, &body);
}

static void step_path_plan(struct helper_job *job)
{
	struct step_path *const state =
		(struct step_path *)((char *)job - offsetof(struct step_path, job));
	state->params.may_take_long = true;
	state->is_planned = true;
	find_path(state);
	exchange_wake(state->exchange); /* The exchange may be gone from here on. */
}
