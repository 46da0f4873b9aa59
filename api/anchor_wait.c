#include "api/anchor_wait.h"

enum { WAIT_MAX_MS = 60 * 1000 };
static const char RETRY_AFTER_SECONDS[] = "5";

static void wake_exchange(struct step_waiter *const waiter)
{
	exchange_wake(((struct anchor_wait *)waiter)->exchange);
}

static int64_t now_ms(const struct anchor_wait *const wait)
{
	const struct clock_source *const clock = wait->exchange->context->clock;
	return clock->monotonic_ms(clock);
}

void anchor_wait_init(struct anchor_wait *const wait, struct exchange *const exchange)
{
	wait->waiter.wake = wake_exchange;
	wait->exchange = exchange;
	wait->deadline_ms = now_ms(wait) + WAIT_MAX_MS;
}

void anchor_wait_look(struct anchor_wait *const wait)
{
	wait->seen = step_watch_generation(store_step_watch(wait->exchange->context->store), span_of(NULL, 0), run_anchors_topic());
}

static enum next fail(struct anchor_wait *const wait, const struct error *const err)
{
	if (err->kind == ERROR_BUSY)
		exchange_add_header(wait->exchange, "Retry-After", RETRY_AFTER_SECONDS);
	return exchange_fail(wait->exchange, err);
}

enum next anchor_wait_for(struct anchor_wait *const wait)
{
	const struct api_context *const context = wait->exchange->context;
	const int64_t left_ms = wait->deadline_ms - now_ms(wait);
	struct error err = {0};
	if (run_ask_anchor(context->store, &wait->anchor, &err) != 0)
		return fail(wait, &err);
	if (left_ms <= 0 || (context->stopping != NULL && *context->stopping)) {
		error_set(&err, ERROR_BUSY, "The anchor of step %llu is still being made: ask again.", (unsigned long long)wait->anchor.step);
		return fail(wait, &err);
	}
	step_watch_wait(store_step_watch(context->store), span_of(NULL, 0), run_anchors_topic(), wait->seen, left_ms, &wait->waiter);
	return NEXT_WAIT;
}
