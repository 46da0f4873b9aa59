#include "api/steps/handlers.h"

#include "api/objects/object_reply.h"
#include "api/steps/form_sent.h"
#include "api/steps/step_url.h"
#include "api/steps/steps_error.h"
#include "api/steps/steps_request.h"

static int fold_object_find(
	struct exchange *exchange, struct object_view *view, struct object *out, struct error *err);
static enum next fold_object_fail(struct exchange *exchange, const struct error *err);
static void fold_object_sent(struct exchange *exchange);
static bool read_steps(struct exchange *exchange, struct run_fold_ref *out, enum next *out_next);

enum next fold_object_begin(struct exchange *exchange)
{
	/* A fold that is made again may have other bytes with the same result. Its ETag and its
	 * `v` differ then. */
	const struct object_reply_override overrides[] = {
		{"cache-control", step_url_cache_control(exchange)}};
	const struct object_reply_params params = {.find = fold_object_find,
		.fail = fold_object_fail,
		.overrides = overrides,
		.override_count = 1,
		.hide_user_metadata = true};
	struct run_fold_ref *const state = arena_take(exchange->arena, sizeof(*state));
	enum next next;
	ASSERT(state != NULL);
	*state = (struct run_fold_ref){
		.run = steps_request_run(exchange), .name = exchange->parameters[3]};
	if (!read_steps(exchange, state, &next))
		return next;
	exchange->state = state;
	exchange->sent = fold_object_sent;
	return object_reply(exchange, &params);
}

static int fold_object_find(
	struct exchange *exchange, struct object_view *view, struct object *out, struct error *err)
{
	(void)view;
	const struct run_fold_ref *const state = exchange->state;
	struct store *const store = exchange->context->store;
	const int result = run_find_fold_object(store, state, exchange->arena, out, err);
	return result == 0 ? step_url_check(exchange, out, err) : result;
}

static enum next fold_object_fail(struct exchange *exchange, const struct error *err)
{
	return steps_error_fail(exchange, err, UINT64_MAX);
}

static void fold_object_sent(struct exchange *exchange)
{
	const struct run_fold_ref *const fold = exchange->state;
	const struct form_sent form = {.run = fold->run, .from = fold->from, .step = fold->to};
	form_sent_count(exchange, &form);
}

static bool read_steps(struct exchange *exchange, struct run_fold_ref *out, enum next *out_next)
{
	ASSERT(exchange->parameter_count >= 4);
	struct span rest = exchange->parameters[2];
	struct span from;
	if (span_split(&rest, '-', &from) && span_parse_u64(from, &out->from) &&
		span_parse_u64(rest, &out->to) && out->from < out->to)
		return true;
	*out_next = steps_error_invalid(exchange, "steps",
		"must be the numbers of two steps with a dash between them, the lower one first");
	return false;
}
