/* The deadline and the wake come from step_watch. `end` records the first interruption: the client
 * hung up, or the place went to another caller. An interruption may come from any thread and before
 * the waiter is registered, so it sets `end` before it cancels the waiter, and long_wait_begun
 * cancels again once the waiter is registered. */
#include "api/exchange/long_wait.h"

#include <stddef.h>

#include "api/exchange/caller.h"

static void long_wait_wake(struct step_waiter *waiter);
static void long_wait_displace(struct share_hold *hold);
static int64_t now_ms(const struct long_wait *wait);
static void long_wait_hang_up(struct exchange *exchange);
static struct step_watch *watch_of(const struct long_wait *wait);

void long_wait_init(
	struct long_wait *wait, struct exchange *exchange, struct share_pool *pool, int64_t wait_ms)
{
	ASSERT(exchange->wait == NULL);
	*wait = (struct long_wait){.waiter = {.wake = long_wait_wake},
		.hold = {.displace = long_wait_displace},
		.exchange = exchange,
		.pool = pool};
	wait->deadline_ms = now_ms(wait) + wait_ms;
	exchange->wait = wait;
	exchange->hang_up = long_wait_hang_up;
}

int long_wait_enter(struct long_wait *wait, struct error *err)
{
	if (wait->pool == NULL || wait->hold.owner != NULL)
		return 0;
	if (share_take(wait->pool, &wait->hold, caller_of(wait->exchange), 1))
		return 0;
	return error_set(err, ERROR_BUSY,
		"Too many requests are waiting, and this caller has its share of them. Try again.");
}

bool long_wait_is_stopping(const struct long_wait *wait)
{
	const _Atomic bool *const stopping = wait->exchange->context->stopping;
	return stopping != NULL && *stopping;
}

int64_t long_wait_left_ms(const struct long_wait *wait)
{
	const int64_t left_ms = wait->deadline_ms - now_ms(wait);
	const bool is_over =
		atomic_load(&wait->end) != LONG_WAIT_LASTS || long_wait_is_stopping(wait);
	return is_over || left_ms < 0 ? 0 : left_ms;
}

int long_wait_check(const struct long_wait *wait, struct error *err)
{
	if (atomic_load(&wait->end) != LONG_WAIT_CROWDED_OUT)
		return 0;
	return error_set(err, ERROR_BUSY,
		"The caller has more than its share of the waiting requests, and other callers need the place. Try again.");
}

enum next long_wait_for(struct long_wait *wait, struct span bucket, struct span run, uint64_t seen)
{
	struct error err = {0};
	if (long_wait_enter(wait, &err) != 0)
		return exchange_fail(wait->exchange, &err);
	step_watch_wait(watch_of(wait), bucket, run, seen, long_wait_left_ms(wait), &wait->waiter);
	long_wait_begun(wait);
	return NEXT_WAIT;
}

void long_wait_begun(struct long_wait *wait)
{
	if (atomic_load(&wait->end) != LONG_WAIT_LASTS)
		step_watch_cancel(watch_of(wait), &wait->waiter);
}

void long_wait_interrupt(struct long_wait *wait, enum long_wait_end end)
{
	int lasts = LONG_WAIT_LASTS;
	ASSERT(end != LONG_WAIT_LASTS);
	atomic_compare_exchange_strong(&wait->end, &lasts, end);
	step_watch_cancel(watch_of(wait), &wait->waiter);
}

void long_wait_leave(struct long_wait *wait)
{
	if (wait != NULL && wait->pool != NULL)
		share_give(wait->pool, &wait->hold);
}

static void long_wait_wake(struct step_waiter *waiter)
{
	exchange_wake(((struct long_wait *)((char *)waiter - offsetof(struct long_wait, waiter)))
			      ->exchange);
}

static void long_wait_displace(struct share_hold *hold)
{
	struct long_wait *const wait =
		(struct long_wait *)((char *)hold - offsetof(struct long_wait, hold));
	long_wait_interrupt(wait, LONG_WAIT_CROWDED_OUT);
}

static int64_t now_ms(const struct long_wait *wait)
{
	const struct clock_source *const clock = wait->exchange->context->clock;
	return clock->monotonic_ms(clock);
}

static void long_wait_hang_up(struct exchange *exchange)
{
	ASSERT(exchange->wait != NULL);
	long_wait_interrupt(exchange->wait, LONG_WAIT_GONE);
}

static struct step_watch *watch_of(const struct long_wait *wait)
{
	return store_step_watch(wait->exchange->context->store);
}
