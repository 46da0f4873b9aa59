/* The long poll. The watch's generation is taken before the catalog is looked at, so a step that is published between the two wakes this
 * waiter at once instead of never. A waiting exchange holds no thread and no reader, only the struct below. */
#include "api/steps/latest_step.h"

#include "api/steps/steps_error.h"
#include "api/steps/steps_request.h"
#include "storage/step_watch.h"

enum { WAIT_MAX_SECONDS = 60 };

struct latest_step { /* the exchange's state */
	struct step_waiter waiter; /* first: wake_exchange finds the rest by it */
	struct exchange *exchange;
	bool has_after;
	uint64_t after;
	int64_t deadline_ms; /* on the monotonic clock */
};

static void wake_exchange(struct step_waiter *const waiter)
{
	exchange_wake(((struct latest_step *)waiter)->exchange);
}

static int64_t now_ms(const struct exchange *const exchange)
{
	const struct clock_source *const clock = exchange->context->clock;
	return clock->monotonic_ms(clock);
}

/* A server that stops answers at once and ends the connection, so that the client's next poll goes to its successor. */
static enum next reply_nothing(struct exchange *const exchange, const bool stopping)
{
	if (stopping)
		exchange_add_header(exchange, "Connection", "close");
	return exchange_reply_empty(exchange, 204);
}

static enum next look(struct exchange *const exchange)
{
	struct latest_step *const state = exchange->state;
	struct store *const store = exchange->context->store;
	struct step_watch *const watch = store_step_watch(store);
	const struct span bucket = steps_request_bucket(exchange);
	const struct span run = steps_request_run(exchange);
	struct step_message step;
	struct error err = {0};

	const uint64_t seen = step_watch_generation(watch, bucket, run);
	if (run_find_latest(store, bucket, run, state->has_after, state->after, exchange->arena, &step, &err) == 0)
		return steps_request_reply_step(exchange, 200, &step, false);
	if (err.kind != ERROR_NOT_READY)
		return exchange_fail(exchange, &err);
	const int64_t left_ms = state->deadline_ms - now_ms(exchange);
	const bool stopping = exchange->context->stopping != NULL && *exchange->context->stopping;
	if (left_ms <= 0 || stopping)
		return reply_nothing(exchange, stopping);
	step_watch_wait(watch, bucket, run, seen, left_ms, &state->waiter);
	return NEXT_WAIT;
}

enum next latest_step_begin(struct exchange *const exchange)
{
	struct latest_step *const state = arena_take(exchange->arena, sizeof(*state));
	uint64_t wait_seconds = 0;
	bool has_wait;
	enum next next;
	ASSERT(state != NULL);
	if (!steps_request_number(exchange, "after", &state->has_after, &state->after, &next)
		|| !steps_request_number(exchange, "wait", &has_wait, &wait_seconds, &next))
		return next;
	if (wait_seconds > WAIT_MAX_SECONDS)
		wait_seconds = WAIT_MAX_SECONDS;
	state->waiter.wake = wake_exchange;
	state->exchange = exchange;
	state->deadline_ms = now_ms(exchange) + (int64_t)wait_seconds * 1000;
	exchange->state = state;
	return look(exchange);
}

enum next latest_step_resume(struct exchange *const exchange)
{
	return look(exchange);
}
