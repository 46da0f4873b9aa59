/* A wait that may last: of a long poll, a stream of events, an anchor that is being made. It takes
 * a share of what all callers may wait for (base/thread/share.h), and it ends early when the client
 * hangs up, or when somebody else needs the place. A waiting exchange holds no thread and no
 * reader. All on the exchange's thread, but for long_wait_interrupt.
 *
 * An exchange has one long wait at most; exchange_release leaves it. */
#ifndef API_EXCHANGE_LONG_WAIT_H
#define API_EXCHANGE_LONG_WAIT_H

#include "api/exchange/exchange.h"
#include "base/thread/step_watch.h"

enum long_wait_end { LONG_WAIT_LASTS, LONG_WAIT_CROWDED_OUT, LONG_WAIT_GONE };

struct long_wait { /* in the exchange's state; stays put until the exchange is released */
	struct step_waiter waiter; /* for whatever wakes by step_watch */
	struct share_hold hold;
	struct exchange *exchange;
	struct share_pool *pool; /* NULL: without a bound */
	int64_t deadline_ms;     /* on the monotonic clock */
	_Atomic int end;         /* of enum long_wait_end */
};

/* `pool`: what it takes one of when it first waits, as context->shares has them. */
void long_wait_init(struct long_wait *wait, struct exchange *exchange, struct share_pool *pool,
	int64_t wait_ms);
/* Takes the place now. -1, busy: all are taken, and the caller has its part. Later calls give 0. */
int long_wait_enter(struct long_wait *wait, struct error *err);
/* 0 when it is over: by its deadline, by its end, or because the server stops. */
int64_t long_wait_left_ms(const struct long_wait *wait);
bool long_wait_is_stopping(const struct long_wait *wait);
/* -1, busy: somebody else got the place. */
int long_wait_check(const struct long_wait *wait, struct error *err);
/* Waits for what is published of bucket and run behind `seen` (base/thread/step_watch.h), as long
 * as is left. NEXT_WAIT, or the reply that says why not. `resume` looks again, whatever woke it. */
enum next long_wait_for(struct long_wait *wait, struct span bucket, struct span run, uint64_t seen);

/* For waits that are begun otherwise, by wait->waiter: behind the call that began it. What
 * interrupted the wait before its waiter could be woken ends it now. */
void long_wait_begun(struct long_wait *wait);

/* From any thread while the exchange lives: ends it with `end`, and wakes the exchange if it waits
 * for step_watch. */
void long_wait_interrupt(struct long_wait *wait, enum long_wait_end end);
void long_wait_leave(struct long_wait *wait); /* NULL is fine */

#endif
