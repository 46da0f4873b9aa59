/* Waiters for the next step of a run. A waiter is woken exactly once: by a publish to its run, by
 * its deadline (from a timer thread, up to 50 ms late), or by step_watch_wake_all at the stop.
 * Being woken promises nothing: the waiter must look again. 10,000 waiters are 10,000 small
 * structs. Internally locked; any thread. */
#ifndef BASE_THREAD_STEP_WATCH_H
#define BASE_THREAD_STEP_WATCH_H

#include "base/clock.h"
#include "base/span.h"

struct step_watch;

/* Embed it in the object that waits, zeroed. It must stay in place until it is woken. */
struct step_waiter {
	/* From any thread, without a lock. Afterwards the waiter belongs to its owner again. */
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
/* Wakes all waiters. Later waiters are woken at once. */
void step_watch_wake_all(struct step_watch *watch);
/* `seen` is the run's step_watch_generation, read BEFORE the look at the catalog: if a publish came
 * in between, the waiter is woken at once. */
uint64_t step_watch_generation(struct step_watch *watch, struct span bucket, struct span run);
void step_watch_wait(struct step_watch *watch, struct span bucket, struct span run, uint64_t seen,
	int64_t wait_ms, struct step_waiter *waiter);
/* Wakes the waiter now if it waits, and does nothing otherwise. Only for owners that know that the
 * waiter still exists: its wake may come from elsewhere at the same moment. */
void step_watch_cancel(struct step_watch *watch, struct step_waiter *waiter);
/* The committer calls it after COMMIT. */
void step_watch_published(struct step_watch *watch, struct span bucket, struct span run);

#endif
