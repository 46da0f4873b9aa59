/* What retention keeps of a run: the last steps, those pinned by name, those that replicas with a
 * lease hold or fetch and the way from there, those that a path answer named a short while ago; and
 * for each stretch of them the way to its first step, from an anchor on. The rest may go. On the
 * committer. Internal to storage. */
#ifndef STORAGE_RUNS_STEP_KEEP_H
#define STORAGE_RUNS_STEP_KEEP_H

#include "storage/core/store.h"
#include "storage/run_tables/run_row.h"
#include "storage/run_tables/step_range.h"

struct step_keep {
	struct step_range *ranges; /* sorted and joined */
	size_t count;
	/* The first step of the stretch that ends at the head has no anchor and keeps others below
	 * it alive: with an anchor of its own they could go. */
	bool wants_anchor;
	uint64_t anchor_at;
};
/* False for a quarter of an hour after a start, of runs that are older than it: then nobody knows
 * what path answers named before. Likewise for as long as the process runs where leases could not
 * be read at its start. False as well while nothing may be deleted. */
bool step_keep_is_known(struct store *store, const struct run_row *run);
/* The run has a head and keep_steps is not 0. Release it also after a failure. */
int step_keep_find(struct store *store, struct db *db, const struct run_row *run,
	struct step_keep *out, struct error *err);
void step_keep_release(struct step_keep *keep);
/* Whether somebody other than the chain needs a kept step: then chain_in_use, saying who. */
int step_keep_check(struct store *store, struct db *db, const struct run_row *run, uint64_t step,
	struct error *err);

#endif
