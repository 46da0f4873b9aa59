#include "api/steps/handlers.h"

#include "api/objects/anchor_wait.h"
#include "api/objects/object_reply.h"
#include "api/steps/form_sent.h"
#include "api/steps/step_url.h"
#include "api/steps/steps_error.h"
#include "api/steps/steps_request.h"

struct step_object_state { /* the exchange's state */
	struct anchor_wait wait;
	struct run_file_ref ref;
	uint64_t anchor; /* the nearest anchor that is kept, for `collected`; UINT64_MAX: none */
};

static enum next reply(struct exchange *exchange);
static void step_object_sent(struct exchange *exchange);
static int step_object_find(
	struct exchange *exchange, struct object_view *view, struct object *out, struct error *err);
static enum next step_object_fail(struct exchange *exchange, const struct error *err);
static enum next step_object_make(struct exchange *exchange);

enum next step_object_begin(struct exchange *exchange)
{
	struct step_object_state *const state = arena_take(exchange->arena, sizeof(*state));
	enum next next;
	ASSERT(state != NULL && exchange->parameter_count >= 4);
	*state = (struct step_object_state){
		.ref = {.run = steps_request_run(exchange), .name = exchange->parameters[3]},
		.anchor = UINT64_MAX};
	anchor_wait_init(&state->wait, exchange);
	if (!steps_request_step(exchange, &state->ref.step, &next))
		return next;
	exchange->state = state;
	exchange->sent = step_object_sent;
	return reply(exchange);
}

enum next step_object_resume(struct exchange *exchange)
{
	return reply(exchange);
}

static enum next reply(struct exchange *exchange)
{
	/* These bytes never change (invariant 6). Only after the run was deleted can the same path
	 * mean other bytes, and a URL with `v` then means none. */
	const struct object_reply_override overrides[] = {
		{"cache-control", step_url_cache_control(exchange)}};
	const struct object_reply_params params = {.find = step_object_find,
		.fail = step_object_fail,
		.make = step_object_make,
		.overrides = overrides,
		.override_count = 1,
		.hide_user_metadata = true};
	return object_reply(exchange, &params);
}

static int step_object_find(
	struct exchange *exchange, struct object_view *view, struct object *out, struct error *err)
{
	(void)view;
	struct step_object_state *const state = exchange->state;
	static const struct span prefix = {(const uint8_t *)"anchor/", sizeof("anchor/") - 1};
	struct store *const store = exchange->context->store;
	struct run_file_ref file = state->ref;
	anchor_wait_look(&state->wait);
	int result = run_find_object(store, &file, exchange->arena, out, &state->anchor, err);
	if (result != 0 && err->kind == ERROR_NO_KEY && span_starts(file.name, prefix)) {
		file.name = span_slice(file.name, prefix.len, file.name.len);
		result = run_find_anchor_file(
			store, &file, exchange->arena, out, &state->wait.anchor, err);
	}
	return result == 0 ? step_url_check(exchange, out, err) : result;
}

static enum next step_object_fail(struct exchange *exchange, const struct error *err)
{
	const struct step_object_state *const state = exchange->state;
	if (err->kind == ERROR_NOT_READY) /* Only making the file shows its size and digest. */
		return step_object_make(exchange);
	return steps_error_fail(exchange, err, state->anchor);
}

static enum next step_object_make(struct exchange *exchange)
{
	return anchor_wait_for(&((struct step_object_state *)exchange->state)->wait);
}

static void step_object_sent(struct exchange *exchange)
{
	const struct step_object_state *const state = exchange->state;
	const struct form_sent form = {.run = state->ref.run,
		.is_anchor = !span_starts(state->ref.name, span_text("delta/")),
		.from = state->ref.step > 0 ? state->ref.step - 1 : 0,
		.step = state->ref.step};
	form_sent_count(exchange, &form);
}
