/* Walks over the runs of all buckets and shows those that the caller may read. It works in slices:
 * a helper reads some runs, then the reactor judges them for some milliseconds at most, then the
 * next slice begins. A bucket in which the caller may know of nothing is passed over whole. */
#ifndef API_LIVE_RUN_WALK_H
#define API_LIVE_RUN_WALK_H

#include "api/live/run_element.h"

struct run_walk {                 /* in the exchange's state */
	struct span after_bucket; /* the walk begins behind this run; used by run_walk_begin */
	struct span after;
	bool names_only; /* the shown runs have their names alone */
	/* Called for each run that the caller may read. False ends the walk. */
	bool (*show)(struct run_walk *walk, const struct run_glance *glance,
		const struct run_rights *rights);
};
/* Returns NEXT_WAIT; `resume` of the route calls run_walk_go_on. */
enum next run_walk_begin(struct exchange *exchange, struct run_walk *walk);
/* NEXT_WAIT: as above. NEXT_REPLY: the walk has ended, and *out_failed tells whether a failure was
 * replied; if not, the caller replies. */
enum next run_walk_go_on(struct exchange *exchange, struct run_walk *walk, bool *out_failed);

#endif
