/* The end of the shard and the clock may both wake the exchange, but it must be woken once. So both
 * use the step watch, which wakes a waiter once: the end is published there under a name that is
 * unique, the address of the wait. A closed watch wakes at once, so while the server stops only the
 * end wakes the exchange, and it does so directly. From shard_wait_finish on the exchange and the
 * shard each have a reference to the wait, and with it to the call: the exchange may end before the
 * call does. */
#include "api/xet/shard_wait.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "api/auth/xet_token.h"
#include "base/memory.h"
#include "base/thread/step_watch.h"

/* How the end of the shard will wake the exchange, or that it has come. */
enum end_state { END_WAKES_BY_WATCH, END_WAKES_EXCHANGE, END_CAME };

struct shard_wait {
	struct step_waiter waiter; /* first */
	struct exchange *exchange; /* valid while it waits */
	struct step_watch *watch;
	struct shard_put *put;
	bool is_finished; /* shard_wait_finish was called */
	_Atomic int end;  /* of enum end_state */
	_Atomic unsigned references;
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
	ASSERT(exchange->transfer != NULL); /* the route requires a token */
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
	wait->references = 1;
	wait->put = shard_put_open(store, &params);
	return wait;
}

struct shard_put *shard_wait_put(const struct shard_wait *wait)
{
	return wait->put;
}

void shard_wait_finish(struct shard_wait *wait)
{
	ASSERT(!wait->is_finished);
	wait->is_finished = true;
	atomic_fetch_add(&wait->references, 1);
	call_start(shard_put_call(wait->put), shard_wait_end, wait);
}

bool shard_wait_is_done(const struct shard_wait *wait)
{
	return atomic_load(&wait->end) == END_CAME;
}

int shard_wait_outcome(const struct shard_wait *wait, struct error *err)
{
	ASSERT(shard_wait_is_done(wait));
	return call_outcome(shard_put_call(wait->put), err);
}

void shard_wait_for(struct shard_wait *wait, int64_t ms)
{
	ASSERT(wait->is_finished && ms >= 0);
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
	if (atomic_exchange(&wait->end, END_CAME) == END_WAKES_EXCHANGE)
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
	const unsigned before = atomic_fetch_sub(&wait->references, 1);
	ASSERT(before >= 1);
	if (before > 1)
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

/* Takes the generation before it looks, so that an end in between is not missed. */
static void wait_for_time(struct shard_wait *wait, int64_t ms)
{
	const uint64_t seen = step_watch_generation(wait->watch, span_text(""), name_of(&wait));
	if (shard_wait_is_done(wait))
		exchange_wake(wait->exchange);
	else
		step_watch_wait(
			wait->watch, span_text(""), name_of(&wait), seen, ms, &wait->waiter);
}
