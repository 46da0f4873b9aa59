/* The step from whose anchor another one is made. Derived versions are at most two derivations
 * deep. A root is a step whose anchor has its own bytes (depth 0). An anchor is made from the
 * nearest root if that is less than ANCHOR_SPAN steps away; else from the nearest step of depth 1,
 * if that is; else from the root, however far away, which gives a new step of depth 1 for the steps
 * that follow. Internal to storage. */
#ifndef STORAGE_RUNS_STEP_ANCHOR_BASE_H
#define STORAGE_RUNS_STEP_ANCHOR_BASE_H

#include "storage/run_tables/step_row.h"

enum { ANCHOR_SPAN = 16 }; /* steps */

struct step_anchor_base {
	struct step_row row;
	unsigned depth; /* of its anchor, published or made */
};
/* 1; 0 when no kept step below `step` can be the base; -1. */
int step_anchor_base_find(
	struct db *db, int64_t run, uint64_t step, struct step_anchor_base *out, struct error *err);

/* Inside the change that records the outcome of a step's proof: decides which step wants an anchor
 * from now on. That is the newest good step, if it has none. While many steps wait for their proof,
 * one of every few wants an anchor too, so that no step is proven over a long chain. */
int step_anchor_want_after(struct db *db, int64_t run, uint64_t step, struct error *err);
/* Inside a change: the newest good step above `root`, and at or below `step`, wants a stored
 * anchor, unless one of these steps wants one already. Retention can then remove what lies below
 * it. */
int step_anchor_want_stored(
	struct db *db, int64_t run, uint64_t root, uint64_t step, struct error *err);
/* Inside the change that pins a step: it wants an anchor. */
int step_anchor_want_pinned(struct db *db, int64_t run, uint64_t step, struct error *err);

#endif
