/* Finds the steps of a run that retention keeps: the last steps; pinned steps; the steps that
 * replicas with a lease hold, with the path from there to the head; the steps that they fetch; and
 * the steps that path answers named in the last 15 minutes. For each range of these it also keeps
 * the path to the first step, from an anchor on. All other steps may be removed. On the committer.
 * Internal to storage. */
#ifndef STORAGE_RUNS_STEP_KEEP_H
#define STORAGE_RUNS_STEP_KEEP_H

#include "storage/core/store.h"
#include "storage/run_tables/run_row.h"
#include "storage/run_tables/step_range.h"

struct step_keep {
	struct step_range *ranges; /* sorted and joined */
	size_t count;
	/* The range that ends at the head would begin at anchor_at, but that step has no anchor, so
	 * steps below it are kept too. With an anchor there they could be removed. */
	bool wants_anchor;
	uint64_t anchor_at;
};
/* Whether it is known which steps must be kept. For runs from before the start it is false for 15
 * minutes, because it is unknown what path answers named before; and as long as the process runs if
 * the leases could not be read at its start. For all runs it is false while nothing may be
 * deleted. */
bool step_keep_is_known(struct store *store, const struct run_row *run);
/* The run must have a head, and its keep_steps must not be 0. Release *out also after a failure. */
int step_keep_find(struct store *store, struct db *db, const struct run_row *run,
	struct step_keep *out, struct error *err);
void step_keep_release(struct step_keep *keep);
/* Whether a pin, a replica or a reader needs a kept step: then chain_in_use, and the message says
 * which. damaged when the leases of the run's replicas are unknown. */
int step_keep_check(struct store *store, struct db *db, const struct run_row *run, uint64_t step,
	struct error *err);

#endif
