/* The objects of a step's made anchor: whether their keys show them, and their end. All inside a
 * change. Internal to storage. */
#ifndef STORAGE_RUNS_STEP_ANCHOR_KEYS_H
#define STORAGE_RUNS_STEP_ANCHOR_KEYS_H

#include "storage/db/db.h"

/* Nothing lies under the key, not even what somebody else put there. */
int step_anchor_keys_free(
	struct db *db, int64_t bucket, struct span key, bool *out_free, struct error *err);
/* Each shows its object, where nothing else lies under it. */
int step_anchor_keys_show(struct db *db, int64_t step, struct error *err);
/* None shows its object any more; the step still has it. */
int step_anchor_keys_hide(struct db *db, int64_t step, struct error *err);
/* The step has no made anchor any more. What other versions are made of stays. */
int step_anchor_keys_let_go(struct db *db, int64_t step, struct error *err);

#endif
