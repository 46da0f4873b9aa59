/* A thread that works in rounds behind the requests: it sleeps between them, until their time comes
 * or somebody wakes it, and ends with the round it is in once it is told to stop. Time is real
 * here, whatever clock a test gives the rest. Embedded in its owner; stays put. */
#ifndef BASE_THREAD_WORKER_THREAD_H
#define BASE_THREAD_WORKER_THREAD_H

#include <stdatomic.h>

#include "base/thread/lock.h"

enum { WORKER_THREAD_UNTIL_WOKEN = -1 };

struct worker_thread_plan {
	const char *name; /* at most 15 bytes */
	int64_t first_ms; /* until the first round, as `round` returns it */
	/* on the thread, no lock held; how long to sleep then: 0 not at all */
	int64_t (*round)(void *owner);
	/* once told to stop, after the last round, on the thread; may be NULL */
	void (*last)(void *owner);
};

struct worker_thread {
	/* the owner may guard its own with it; under it only is_stopping and wake_held are
	 * called */
	struct lock lock;
	struct lock_condition changed;
	bool woken;            /* guarded by lock; since the round began */
	_Atomic bool stopping; /* written under lock */
	uint64_t spent;        /* the thread alone: bytes since the last pause */
	struct worker_thread_plan plan;
	void *owner;
	pthread_t thread;
};

void worker_thread_start(
	struct worker_thread *worker, const struct worker_thread_plan *plan, void *owner);
/* The next round begins at once, after the present one. Any thread, until the release. */
void worker_thread_wake(struct worker_thread *worker);
/* The same by who holds the lock: what is queued under it may lead to the release as soon as it is
 * let go. */
void worker_thread_wake_held(struct worker_thread *worker);
bool worker_thread_is_stopping(const struct worker_thread *worker);
/* The thread alone, in a round. False, and early, when it shall stop. */
bool worker_thread_pause(struct worker_thread *worker, int64_t ms);
/* The same for as long as these bytes of work take at this rate (0: without bound), in pauses of
 * some ms. */
bool worker_thread_spend(struct worker_thread *worker, uint64_t bytes, uint64_t bytes_per_second);
/* No further round begins, and pauses end. Returns at once. */
void worker_thread_quiesce(struct worker_thread *worker);
void worker_thread_stop(struct worker_thread *worker); /* quiesces, and waits for the end */
/* after the stop, when nobody wakes it any more */
void worker_thread_release(struct worker_thread *worker);

#endif
