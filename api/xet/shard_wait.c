/* The shard's end and the clock both want to wake the exchange, and one of them may. So both do it
 * through the step watch, which wakes a waiter once: the end is published there under a name that
 * nobody else has, the wait's address. A watch that is closed wakes at once; so when the server
 * stops the end alone does it. From finish on the exchange and the shard both hold the wait, and
 * with it the call, which is not the exchange's: the exchange may end before it. */
#include "api/xet/shard_wait.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "api/auth/xet_token.h"
#include "base/memory.h"
#include "base/thread/step_watch.h"

enum end_wakes { END_WAKES_BY_WATCH, END_WAKES_EXCHANGE, END_WAS };

struct shard_wait {
	struct step_waiter waiter; /* first */
	struct exchange *exchange; /* while it waits */
	struct step_watch *watch;
	struct shard_put *put;
	bool is_finished;
	_Atomic int end; /* of enum end_wakes */
	_Atomic unsigned holders;
};

static void shard_wait_room(void *owner);
static void shard_wait_wake(struct step_waiter *waiter);
static void shard_wait_end(void *owner);
static struct span name_of(struct shard_wait *const *wait);
static void let_go(struct shard_wait *wait);
static void wait_for_end(struct shard_wait *wait);
static void wait_for_time(struct shard_wait *wait, int64_t ms);

struct shard_wait *shard_wait_open(struct exchange *exchange)
{
	struct store *const store = exchange->context->store;
	struct shard_wait *const wait = memory_new(sizeof(*wait));
	const struct shard_put_params params = {
		.bucket_id = exchange->transfer->bucket_id,
		.account = exchange->transfer->account,
		.room = shard_wait_room,
		.owner = wait,
	};
	wait->waiter.wake = shard_wait_wake;
	wait->exchange = exchange;
	wait->watch = store_step_watch(store);
	wait->holders = 1;
	wait->put = shard_put_open(store, &params);
	return wait;
}

struct shard_put *shard_wait_put(const struct shard_wait *wait)
{
	return wait->put;
}

void shard_wait_finish(struct shard_wait *wait)
{
	wait->is_finished = true;
	atomic_fetch_add(&wait->holders, 1);
	call_start(shard_put_call(wait->put), shard_wait_end, wait);
}

bool shard_wait_is_done(const struct shard_wait *wait)
{
	return atomic_load(&wait->end) == END_WAS;
}

int shard_wait_outcome(const struct shard_wait *wait, struct error *err)
{
	return call_outcome(shard_put_call(wait->put), err);
}

void shard_wait_for(struct shard_wait *wait, int64_t ms)
{
	const _Atomic bool *const stopping = wait->exchange->context->stopping;
	if (ms == 0 || (stopping != NULL && *stopping))
		wait_for_end(wait);
	else
		wait_for_time(wait, ms);
}

void shard_wait_hang_up(struct shard_wait *wait)
{
	if (wait->is_finished && !shard_wait_is_done(wait))
		shard_put_give_up(wait->put);
}

void shard_wait_close(struct shard_wait *wait)
{
	if (wait == NULL)
		return;
	shard_wait_hang_up(wait);
	let_go(wait);
}

static void shard_wait_room(void *owner)
{
	exchange_wake(((struct shard_wait *)owner)->exchange);
}

static void shard_wait_wake(struct step_waiter *waiter)
{
	exchange_wake(((struct shard_wait *)waiter)->exchange);
}

static void shard_wait_end(void *owner)
{
	struct shard_wait *const wait = owner;
	if (atomic_exchange(&wait->end, END_WAS) == END_WAKES_EXCHANGE)
		exchange_wake(wait->exchange);
	else
		step_watch_published(wait->watch, span_text(""), name_of(&wait));
	let_go(wait);
}

static struct span name_of(struct shard_wait *const *wait)
{
	return span_of(wait, sizeof(*wait));
}

static void let_go(struct shard_wait *wait)
{
	if (atomic_fetch_sub(&wait->holders, 1) > 1)
		return;
	call_free(shard_put_call(wait->put));
	free(wait);
}

static void wait_for_end(struct shard_wait *wait)
{
	int expected = END_WAKES_BY_WATCH;
	if (!atomic_compare_exchange_strong(&wait->end, &expected, END_WAKES_EXCHANGE))
		exchange_wake(wait->exchange);
}

/* The generation is taken before the look, so that an end in between is not missed. */
static void wait_for_time(struct shard_wait *wait, int64_t ms)
{
	const uint64_t seen = step_watch_generation(wait->watch, span_text(""), name_of(&wait));
	if (shard_wait_is_done(wait))
		exchange_wake(wait->exchange);
	else
		step_watch_wait(
			wait->watch, span_text(""), name_of(&wait), seen, ms, &wait->waiter);
}
