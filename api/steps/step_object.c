#include "api/steps/step_object.h"

#include "api/object_reply.h"
#include "api/steps/steps_error.h"
#include "api/steps/steps_request.h"

struct step_object_state { /* the exchange's state */
	uint64_t step;
	uint64_t anchor;
};

static int find_published(struct exchange *const exchange, struct object_view *const view, struct object *const out,
	struct error *const err)
{
	(void)view;
	struct step_object_state *const state = exchange->state;
	return run_find_object(exchange->context->store, steps_request_bucket(exchange), steps_request_run(exchange), state->step,
		exchange->parameters[3], exchange->arena, out, &state->anchor, err);
}

static enum next fail(struct exchange *const exchange, const struct error *const err)
{
	const struct step_object_state *const state = exchange->state;
	return steps_error_fail(exchange, err, state->anchor);
}

enum next step_object_begin(struct exchange *const exchange)
{
	/* Invariant 6: these bytes never change. Only their number and run could be given to others, after the run was ended. */
	static const struct object_reply_override overrides[] = {{"cache-control", "private, max-age=31536000, immutable"}};
	static const struct object_reply_params params = {.find = find_published, .fail = fail, .overrides = overrides, .override_count = 1,
		.hide_user_metadata = true};
	struct step_object_state *const state = arena_take(exchange->arena, sizeof(*state));
	enum next next;
	ASSERT(state != NULL);
	state->anchor = UINT64_MAX;
	if (!steps_request_step(exchange, &state->step, &next))
		return next;
	exchange->state = state;
	return object_reply(exchange, &params);
}
