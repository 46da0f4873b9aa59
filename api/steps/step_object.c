#include "api/steps/step_object.h"

#include "api/objects/anchor_wait.h"
#include "api/objects/object_reply.h"
#include "api/steps/steps_error.h"
#include "api/steps/steps_request.h"

struct step_object_state { /* the exchange's state */
	struct anchor_wait wait;
	uint64_t step;
	uint64_t anchor;
};

static int find_published(
	struct exchange *exchange, struct object_view *view, struct object *out, struct error *err)
{
	(void)view;
	struct step_object_state *const state = exchange->state;
	static const struct span prefix = {(const uint8_t *)"anchor/", sizeof("anchor/") - 1};
	struct store *const store = exchange->context->store;
	const struct span name = exchange->parameters[3];
	anchor_wait_look(&state->wait);
	const int result =
		run_find_object(store, steps_request_bucket(exchange), steps_request_run(exchange),
			state->step, name, exchange->arena, out, &state->anchor, err);
	if (result == 0 || err->kind != ERROR_NO_KEY || !span_starts(name, prefix))
		return result;
	return run_find_anchor_file(store, steps_request_bucket(exchange),
		steps_request_run(exchange), state->step, span_slice(name, prefix.len, name.len),
		exchange->arena, out, &state->wait.anchor, err);
}

static enum next make(struct exchange *exchange)
{
	return anchor_wait_for(&((struct step_object_state *)exchange->state)->wait);
}

static enum next fail(struct exchange *exchange, const struct error *err)
{
	const struct step_object_state *const state = exchange->state;
	if (err->kind == ERROR_NOT_READY) /* of a file that only making it tells about */
		return make(exchange);
	return steps_error_fail(exchange, err, state->anchor);
}

static enum next reply(struct exchange *exchange)
{
	/* Invariant 6: these bytes never change. Only their number and run could be given to
	 * others, after the run was ended. */
	static const struct object_reply_override overrides[] = {
		{"cache-control", "private, max-age=31536000, immutable"}};
	static const struct object_reply_params params = {.find = find_published,
		.fail = fail,
		.make = make,
		.overrides = overrides,
		.override_count = 1,
		.hide_user_metadata = true};
	return object_reply(exchange, &params);
}

enum next step_object_begin(struct exchange *exchange)
{
	struct step_object_state *const state = arena_take(exchange->arena, sizeof(*state));
	enum next next;
	ASSERT(state != NULL);
	*state = (struct step_object_state){.anchor = UINT64_MAX};
	anchor_wait_init(&state->wait, exchange);
	if (!steps_request_step(exchange, &state->step, &next))
		return next;
	exchange->state = state;
	return reply(exchange);
}

enum next step_object_resume(struct exchange *exchange)
{
	return reply(exchange);
}
