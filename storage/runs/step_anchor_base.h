/* Upon which step an anchor is made. Derived versions are at most two derivations deep, so: a root
 * is a step whose anchor lies there plainly (depth 0); upon the nearest root as long as it is less
 * than ANCHOR_SPAN steps away; else upon the nearest step of depth 1 that is; else upon the root
 * however far, which gives a new step of depth 1 for those that follow. Internal to storage. */
#ifndef STORAGE_RUNS_STEP_ANCHOR_BASE_H
#define STORAGE_RUNS_STEP_ANCHOR_BASE_H

#include "storage/run_tables/step_row.h"

enum { ANCHOR_SPAN = 16 };

struct step_anchor_base {
	struct step_row row;
	unsigned depth; /* of its anchor, published or made */
};
/* 1; 0 when no kept step below can be one; -1. */
int step_anchor_base_find(
	struct db *db, int64_t run, uint64_t step, struct step_anchor_base *out, struct error *err);

/* Inside the change that says what became of a step's proof: of which step an anchor is wanted from
 * now on. That is the newest good one, when it has none; and while many wait for their proof one of
 * every few, so that none is proven over a long chain. */
int step_anchor_want_after(struct db *db, int64_t run, uint64_t step, struct error *err);
/* Inside a change: the newest good step above `root`, at or below `step`, gets a stored anchor,
 * unless one there is on its way already: retention can let go what lies below it then. */
int step_anchor_want_stored(
	struct db *db, int64_t run, uint64_t root, uint64_t step, struct error *err);
/* Inside the change that pins a step. */
int step_anchor_want_pinned(struct db *db, int64_t run, uint64_t step, struct error *err);

#endif
