/* The part of a stream that tells runs: those that the caller may read and that changed, or whose
 * fleets did in more than the times of reports. */
#ifndef API_LIVE_LIVE_RUNS_H
#define API_LIVE_LIVE_RUNS_H

#include "api/live/live_part.h"

struct live_runs {
	struct live_part part;  /* first */
	uint64_t changes;       /* of runs, told up to here (storage/core/run_feed.h) */
	uint64_t changes_until; /* what the round is about */
	uint64_t moves;         /* of fleets, likewise (storage/runs/replica.h) */
	uint64_t moves_until;
};
void live_runs_begin(struct live_runs *runs, struct exchange *exchange); /* from now on */

#endif
