/* Waiters are in two sets of lists: by run (1,024 buckets), for publishes, and on a timer wheel of
 * 50 ms slots, for deadlines. Both are doubly linked, so that waking costs the same among ten
 * waiters or ten thousand. A deadline beyond one turn of the wheel stays in its slot until its turn
 * comes. Generations are counted in 4,096 slots by the hash of the run: two runs in one slot cost a
 * needless look, never a missed step. */
#include "base/thread/step_watch.h"

#include <stdlib.h>

#include "base/digest/xxh3.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread/worker_thread.h"

enum { RUN_BUCKETS = 1024, GENERATIONS = 4096, WHEEL_SLOTS = 2048, TICK_MS = 50 };

struct step_watch {
	const struct clock_source *clock;
	struct worker_thread thread;
	struct lock lock;
	struct step_waiter *runs[RUN_BUCKETS]; /* guarded by lock, like all fields below */
	struct step_waiter *wheel[WHEEL_SLOTS];
	uint64_t generations[GENERATIONS];
	size_t waiting;
	int64_t tick; /* the wheel is empty up to this tick */
	bool closed;  /* new waiters are refused */
};

static int64_t step_watch_round(void *owner);
static void turn_wheel(struct step_watch *watch, int64_t now_ms, struct step_waiter **woken);
static void take_expired(
	struct step_watch *watch, uint64_t slot, int64_t now, struct step_waiter **woken);
static int64_t deadline_tick(const struct step_waiter *waiter);
static void take(struct step_watch *watch, struct step_waiter *waiter, struct step_waiter **woken);
static struct step_waiter **run_bucket(struct step_watch *watch, uint64_t run_hash);
static struct step_waiter **wheel_slot(struct step_watch *watch, const struct step_waiter *waiter);
static void wake_list(struct step_waiter *woken);
static uint64_t hash_run(struct span bucket, struct span run);
static void add(struct step_watch *watch, struct step_waiter *waiter);

struct step_watch *step_watch_start(const struct clock_source *clock)
{
	static const struct worker_thread_plan plan = {.name = "step_watch",
		.first_ms = WORKER_THREAD_UNTIL_WOKEN,
		.round = step_watch_round};
	struct step_watch *const watch = memory_new(sizeof(*watch));
	watch->clock = clock;
	watch->tick = clock->monotonic_ms(clock) / TICK_MS;
	lock_init(&watch->lock, LOCK_WATCH);
	worker_thread_start(&watch->thread, &plan, watch);
	return watch;
}

void step_watch_stop(struct step_watch *watch)
{
	if (watch == NULL)
		return;
	step_watch_wake_all(watch);
	worker_thread_stop(&watch->thread);
	ASSERT(watch->waiting == 0);
	worker_thread_release(&watch->thread);
	lock_release(&watch->lock);
	free(watch);
}

void step_watch_wake_all(struct step_watch *watch)
{
	struct step_waiter *woken = NULL;
	lock_enter(&watch->lock);
	watch->closed = true;
	for (size_t i = 0; i < RUN_BUCKETS; i++)
		while (watch->runs[i] != NULL)
			take(watch, watch->runs[i], &woken);
	lock_leave(&watch->lock);
	wake_list(woken);
}

uint64_t step_watch_generation(struct step_watch *watch, struct span bucket, struct span run_name)
{
	const uint64_t run_hash = hash_run(bucket, run_name);
	lock_enter(&watch->lock);
	const uint64_t generation = watch->generations[run_hash % GENERATIONS];
	lock_leave(&watch->lock);
	return generation;
}

void step_watch_wait(struct step_watch *watch, struct span bucket, struct span run_name,
	uint64_t seen, int64_t wait_ms, struct step_waiter *waiter)
{
	ASSERT(waiter->wake != NULL);
	waiter->run_hash = hash_run(bucket, run_name);
	waiter->deadline_ms =
		watch->clock->monotonic_ms(watch->clock) + (wait_ms > 0 ? wait_ms : 0);
	lock_enter(&watch->lock);
	const bool at_once = watch->closed || wait_ms <= 0 ||
		watch->generations[waiter->run_hash % GENERATIONS] != seen;
	const bool is_first = !at_once && watch->waiting == 0;
	if (!at_once) {
		if (deadline_tick(waiter) <= watch->tick)
			waiter->deadline_ms = watch->tick * TICK_MS;
		add(watch, waiter);
	}
	lock_leave(&watch->lock);
	if (at_once)
		waiter->wake(waiter);
	else if (is_first)
		worker_thread_wake(&watch->thread);
}

void step_watch_cancel(struct step_watch *watch, struct step_waiter *waiter)
{
	struct step_waiter *woken = NULL;
	lock_enter(&watch->lock);
	if (waiter->is_waiting)
		take(watch, waiter, &woken);
	lock_leave(&watch->lock);
	wake_list(woken);
}

void step_watch_published(struct step_watch *watch, struct span bucket, struct span run_name)
{
	const uint64_t run_hash = hash_run(bucket, run_name);
	struct step_waiter *woken = NULL;
	lock_enter(&watch->lock);
	watch->generations[run_hash % GENERATIONS]++;
	struct step_waiter *waiter = *run_bucket(watch, run_hash);
	while (waiter != NULL) {
		struct step_waiter *const next = waiter->next;
		if (waiter->run_hash == run_hash)
			take(watch, waiter, &woken);
		waiter = next;
	}
	lock_leave(&watch->lock);
	wake_list(woken);
}

static int64_t step_watch_round(void *owner)
{
	struct step_watch *const watch = owner;
	struct step_waiter *woken = NULL;
	lock_enter(&watch->lock);
	turn_wheel(watch, watch->clock->monotonic_ms(watch->clock), &woken);
	const bool waits = watch->waiting > 0;
	lock_leave(&watch->lock);
	wake_list(woken);
	return waits ? TICK_MS : WORKER_THREAD_UNTIL_WOKEN;
}

/* Empties all slots whose tick has come; after a jump over more than one turn, each slot once. */
static void turn_wheel(struct step_watch *watch, int64_t now_ms, struct step_waiter **woken)
{
	const int64_t now = now_ms / TICK_MS;
	const int64_t turn_ago = now - WHEEL_SLOTS;
	for (int64_t tick = watch->tick > turn_ago ? watch->tick + 1 : turn_ago + 1; tick <= now;
		tick++)
		take_expired(watch, (uint64_t)tick % WHEEL_SLOTS, now, woken);
	if (now > watch->tick)
		watch->tick = now;
}

static void take_expired(
	struct step_watch *watch, uint64_t slot, int64_t now, struct step_waiter **woken)
{
	struct step_waiter *waiter = watch->wheel[slot];
	while (waiter != NULL) {
		struct step_waiter *const next = waiter->timer_next;
		if (deadline_tick(waiter) <= now)
			take(watch, waiter, woken);
		waiter = next;
	}
}

/* The tick at whose end the deadline has passed. */
static int64_t deadline_tick(const struct step_waiter *waiter)
{
	return waiter->deadline_ms / TICK_MS + 1;
}

/* Takes the waiter out of both lists and adds it to `woken`, linked by next. From here on only the
 * caller knows it. */
static void take(struct step_watch *watch, struct step_waiter *waiter, struct step_waiter **woken)
{
	lock_assert_held(&watch->lock);
	ASSERT(waiter->is_waiting && watch->waiting > 0);
	if (waiter->previous != NULL)
		waiter->previous->next = waiter->next;
	else
		*run_bucket(watch, waiter->run_hash) = waiter->next;
	if (waiter->next != NULL)
		waiter->next->previous = waiter->previous;
	if (waiter->timer_previous != NULL)
		waiter->timer_previous->timer_next = waiter->timer_next;
	else
		*wheel_slot(watch, waiter) = waiter->timer_next;
	if (waiter->timer_next != NULL)
		waiter->timer_next->timer_previous = waiter->timer_previous;
	watch->waiting--;
	waiter->is_waiting = false;
	waiter->next = *woken;
	*woken = waiter;
}

static struct step_waiter **run_bucket(struct step_watch *watch, uint64_t run_hash)
{
	return &watch->runs[run_hash % RUN_BUCKETS];
}

static struct step_waiter **wheel_slot(struct step_watch *watch, const struct step_waiter *waiter)
{
	return &watch->wheel[(uint64_t)deadline_tick(waiter) % WHEEL_SLOTS];
}

/* Called without the lock, because a woken waiter may be freed, or wait again, at once. */
static void wake_list(struct step_waiter *woken)
{
	while (woken != NULL) {
		struct step_waiter *const waiter = woken;
		woken = waiter->next;
		waiter->wake(waiter);
	}
}

static uint64_t hash_run(struct span bucket, struct span run)
{
	const uint64_t parts[2] = {xxh3_64(bucket), xxh3_64(run)};
	return xxh3_64(span_of(parts, sizeof(parts)));
}

static void add(struct step_watch *watch, struct step_waiter *waiter)
{
	struct step_waiter **const bucket = run_bucket(watch, waiter->run_hash);
	struct step_waiter **const slot = wheel_slot(watch, waiter);
	waiter->previous = NULL;
	waiter->next = *bucket;
	if (*bucket != NULL)
		(*bucket)->previous = waiter;
	*bucket = waiter;
	waiter->timer_previous = NULL;
	waiter->timer_next = *slot;
	if (*slot != NULL)
		(*slot)->timer_previous = waiter;
	*slot = waiter;
	waiter->is_waiting = true;
	watch->waiting++;
}
