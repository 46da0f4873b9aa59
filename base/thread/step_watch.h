/* Who waits for a run's next step. A waiter is woken exactly once: by a publish to its run, by its
 * deadline (a timer thread, to 50 ms), or by step_watch_wake_all at stop. Being woken promises
 * nothing: look again. 10,000 waiters are 10,000 small structs. Internally locked; any thread. */
#ifndef BASE_THREAD_STEP_WATCH_H
#define BASE_THREAD_STEP_WATCH_H

#include "base/clock.h"
#include "base/span.h"

struct step_watch;

struct step_waiter { /* embed in whoever waits; stays put until woken */
	/* from any thread, no lock held; afterwards the waiter is the owner's again */
	void (*wake)(struct step_waiter *waiter);
	struct step_waiter *next;
	struct step_waiter *previous;
	struct step_waiter *timer_next;
	struct step_waiter *timer_previous;
	uint64_t run_hash;
	int64_t deadline_ms;
	bool is_waiting;
};

struct step_watch *step_watch_start(const struct clock_source *clock);
void step_watch_stop(struct step_watch *watch);
/* Wakes all and refuses new ones (they are woken at once). */
void step_watch_wake_all(struct step_watch *watch);
/* `seen` is step_watch_generation of the run taken BEFORE looking at the catalog: when a publish
 * came in between, the waiter is woken at once. */
uint64_t step_watch_generation(struct step_watch *watch, struct span bucket, struct span run);
void step_watch_wait(struct step_watch *watch, struct span bucket, struct span run, uint64_t seen,
	int64_t wait_ms, struct step_waiter *waiter);
/* Wakes the waiter now, if it waits; when it does not (any more, or yet), nothing. For owners that
 * know that the waiter is still there: its wake may come from elsewhere at the same moment. */
void step_watch_cancel(struct step_watch *watch, struct step_waiter *waiter);
/* From the committer after COMMIT. */
void step_watch_published(struct step_watch *watch, struct span bucket, struct span run);

#endif
