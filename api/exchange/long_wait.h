/* A wait that may last long: for a step (long poll), for events, or for an anchor that is being
 * made. It takes a place in a pool that all callers share (base/thread/share.h). It ends early when
 * the client hangs up, or when another caller needs the place. A waiting exchange occupies no
 * thread and no reader of the catalog. All on the exchange's thread, except long_wait_interrupt.
 *
 * An exchange has at most one long wait; exchange_release leaves it. */
#ifndef API_EXCHANGE_LONG_WAIT_H
#define API_EXCHANGE_LONG_WAIT_H

#include "api/exchange/exchange.h"
#include "base/thread/step_watch.h"

enum long_wait_end { LONG_WAIT_LASTS, LONG_WAIT_CROWDED_OUT, LONG_WAIT_GONE };

struct long_wait { /* in the exchange's state; stays put until the exchange is released */
	struct step_waiter waiter; /* for all that wakes through step_watch */
	struct share_hold hold;
	struct exchange *exchange;
	struct share_pool *pool; /* NULL: without a limit */
	int64_t deadline_ms;     /* on the monotonic clock */
	_Atomic int end;         /* of enum long_wait_end */
};

/* `pool`, one of context->shares, gives the place, which the exchange takes when it first waits.
 * NULL: without a limit. */
void long_wait_init(struct long_wait *wait, struct exchange *exchange, struct share_pool *pool,
	int64_t wait_ms);
/* Takes the place now. Fails with busy when all places are taken and the caller has its share.
 * Later calls return 0. */
int long_wait_enter(struct long_wait *wait, struct error *err);
/* 0 when the wait is over: its deadline has passed, it was interrupted, or the server stops. */
int64_t long_wait_left_ms(const struct long_wait *wait);
bool long_wait_is_stopping(const struct long_wait *wait);
/* Fails with busy when the place went to another caller. */
int long_wait_check(const struct long_wait *wait, struct error *err);
/* Waits until bucket and run have a publish later than `seen` (base/thread/step_watch.h), for the
 * time that is left. Returns NEXT_WAIT, or a failure reply. `resume` must look again, because a
 * wake does not say its reason. */
enum next long_wait_for(struct long_wait *wait, struct span bucket, struct span run, uint64_t seen);

/* For waits that another function began with wait->waiter; to be called directly after that. If the
 * wait was interrupted before its waiter could be woken, it ends now. */
void long_wait_begun(struct long_wait *wait);

/* From any thread while the exchange lives: ends the wait with `end`, unless it has ended already,
 * and wakes the exchange if it waits for step_watch. */
void long_wait_interrupt(struct long_wait *wait, enum long_wait_end end);
void long_wait_leave(struct long_wait *wait); /* NULL is fine */

#endif
