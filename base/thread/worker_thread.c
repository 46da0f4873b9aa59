/* The thread sleeps on `changed` until its time or a wake, runs a round without the lock, and looks
 * at `stopping` before each round. A wake during a round sets `woken`, so that the next sleep ends
 * at once. */
#include "base/thread/worker_thread.h"

#include "base/clock.h"
#include "base/error.h"

enum { PAUSE_BYTES = 1024 * 1024 };

static void *worker_thread_run(void *argument);
static void sleep_until_round(struct worker_thread *worker, int64_t ms);

void worker_thread_start(
	struct worker_thread *worker, const struct worker_thread_plan *plan, void *owner)
{
	ASSERT(plan->name != NULL && plan->round != NULL);
	worker->woken = false;
	worker->spent = 0;
	worker->plan = *plan;
	worker->owner = owner;
	atomic_init(&worker->stopping, false);
	lock_init(&worker->lock, LOCK_WORKER);
	lock_condition_init(&worker->changed);
	lock_thread_start(&worker->thread, plan->name, worker_thread_run, worker);
}

void worker_thread_wake(struct worker_thread *worker)
{
	lock_enter(&worker->lock);
	worker_thread_wake_held(worker);
	lock_leave(&worker->lock);
}

void worker_thread_wake_held(struct worker_thread *worker)
{
	lock_assert_held(&worker->lock);
	worker->woken = true;
	lock_signal(&worker->changed);
}

bool worker_thread_is_stopping(const struct worker_thread *worker)
{
	return atomic_load(&worker->stopping);
}

bool worker_thread_pause(struct worker_thread *worker, int64_t ms)
{
	if (ms <= 0)
		return !worker_thread_is_stopping(worker);
	const int64_t until = clock_monotonic_ms() + ms;
	lock_enter(&worker->lock);
	for (int64_t left = ms; left > 0 && !worker_thread_is_stopping(worker);
		left = until - clock_monotonic_ms())
		lock_wait_for(&worker->lock, &worker->changed, left);
	lock_leave(&worker->lock);
	return !worker_thread_is_stopping(worker);
}

bool worker_thread_spend(struct worker_thread *worker, uint64_t bytes, uint64_t bytes_per_second)
{
	worker->spent += bytes;
	if (bytes_per_second == 0 || worker->spent < PAUSE_BYTES)
		return worker_thread_pause(worker, 0);
	const uint64_t ms = worker->spent * 1000 / bytes_per_second;
	worker->spent = 0;
	return worker_thread_pause(worker, (int64_t)ms);
}

void worker_thread_quiesce(struct worker_thread *worker)
{
	lock_enter(&worker->lock);
	atomic_store(&worker->stopping, true);
	lock_signal(&worker->changed);
	lock_leave(&worker->lock);
}

void worker_thread_stop(struct worker_thread *worker)
{
	worker_thread_quiesce(worker);
	pthread_join(worker->thread, NULL);
}

void worker_thread_release(struct worker_thread *worker)
{
	ASSERT(worker_thread_is_stopping(worker));
	lock_condition_release(&worker->changed);
	lock_release(&worker->lock);
}

static void *worker_thread_run(void *argument)
{
	struct worker_thread *const worker = argument;
	int64_t ms = worker->plan.first_ms;
	lock_enter(&worker->lock);
	for (;;) {
		sleep_until_round(worker, ms);
		if (worker_thread_is_stopping(worker))
			break;
		worker->woken = false;
		lock_leave(&worker->lock);
		ms = worker->plan.round(worker->owner);
		lock_enter(&worker->lock);
	}
	lock_leave(&worker->lock);
	if (worker->plan.last != NULL)
		worker->plan.last(worker->owner);
	return NULL;
}

static void sleep_until_round(struct worker_thread *worker, int64_t ms)
{
	const int64_t until = clock_monotonic_ms() + ms;
	lock_assert_held(&worker->lock);
	while (!worker->woken && !worker_thread_is_stopping(worker)) {
		const int64_t left = until - clock_monotonic_ms();
		if (ms == WORKER_THREAD_UNTIL_WOKEN)
			lock_wait(&worker->lock, &worker->changed);
		else if (left > 0)
			lock_wait_for(&worker->lock, &worker->changed, left);
		else
			return;
	}
}
