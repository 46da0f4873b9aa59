/* Waits for the next step of a run: what a program that follows from its own code (the library)
 * calls in its loop. */
#ifndef CLIENT_FOLLOW_NEXT_STEP_H
#define CLIENT_FOLLOW_NEXT_STEP_H

#include "client/follow/stepper.h"

struct next_order {
	bool has_wanted; /* otherwise the newest step is wanted */
	uint64_t wanted;
	int64_t wait_ms; /* 0: one try; below 0: for ever */
	bool is_seen;    /* the caller has the held step already */
};
/* 1 when a step is held that the caller has not seen, or the wanted one: `round` has its facts. 0
 * when there was none in time, and the server or the run may not even be there. Fails with the last
 * failure when the server could not be reached at all in that time, with busy when the word to stop
 * came, and with whatever no wait can cure. Damage is cured from an anchor, once. A path that
 * retention removed while it was fetched is asked for again. */
int next_step(struct stepper *stepper, const struct next_order *order, struct stepper_round *round,
	struct error *err);

#endif
