/* A thread that works in rounds behind the requests. It sleeps between rounds until its time comes
 * or a caller wakes it. When it is told to stop, it ends after the round that it is in. Its time is
 * real, whatever clock a test gives to other code. Embedded in its owner; must stay in place. */
#ifndef BASE_THREAD_WORKER_THREAD_H
#define BASE_THREAD_WORKER_THREAD_H

#include <stdatomic.h>

#include "base/thread/lock.h"

enum { WORKER_THREAD_UNTIL_WOKEN = -1 };

struct worker_thread_plan {
	const char *name; /* at most 15 bytes */
	int64_t first_ms; /* how long to sleep before the first round, in the terms of `round` */
	/* Runs on the thread, without a lock. Returns how many ms to sleep: 0 means not at all,
	 * WORKER_THREAD_UNTIL_WOKEN until a wake. */
	int64_t (*round)(void *owner);
	/* runs once on the thread after the last round; may be NULL */
	void (*last)(void *owner);
};

struct worker_thread {
	/* The owner may guard its own data with this lock. Under it the owner calls only
	 * is_stopping and wake_held. */
	struct lock lock;
	struct lock_condition changed;
	bool woken;            /* since the round began; guarded by lock */
	_Atomic bool stopping; /* written under lock */
	uint64_t spent;        /* bytes since the last pause; the thread alone uses it */
	struct worker_thread_plan plan;
	void *owner;
	pthread_t thread;
};

void worker_thread_start(
	struct worker_thread *worker, const struct worker_thread_plan *plan, void *owner);
/* The next round begins at once, after the present one. Any thread, until the release. */
void worker_thread_wake(struct worker_thread *worker);
/* The same for a caller that holds the lock: work that is queued under the lock may lead to the
 * release as soon as the lock is left. */
void worker_thread_wake_held(struct worker_thread *worker);
bool worker_thread_is_stopping(const struct worker_thread *worker);
/* Sleeps. Only for the thread itself, in a round. Returns false, possibly early, when the thread
 * must stop. */
bool worker_thread_pause(struct worker_thread *worker, int64_t ms);
/* Sleeps as long as `bytes` of work take at `bytes_per_second` (0: no limit), in pauses of some ms.
 * Returns false when the thread must stop. */
bool worker_thread_spend(struct worker_thread *worker, uint64_t bytes, uint64_t bytes_per_second);
/* Begins no further round, and ends pauses. Returns at once. */
void worker_thread_quiesce(struct worker_thread *worker);
/* quiesces, and waits for the thread to end */
void worker_thread_stop(struct worker_thread *worker);
/* After the stop, when nobody can wake it any more. */
void worker_thread_release(struct worker_thread *worker);

#endif
