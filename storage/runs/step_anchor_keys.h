/* The objects of a step's made anchor: whether their keys show them, and their removal. All inside
 * a change. Internal to storage. */
#ifndef STORAGE_RUNS_STEP_ANCHOR_KEYS_H
#define STORAGE_RUNS_STEP_ANCHOR_KEYS_H

#include "storage/db/db.h"

/* *out_free: no object has the key, neither one that a client put nor one of the server. */
int step_anchor_keys_free(
	struct db *db, int64_t bucket, struct span key, bool *out_free, struct error *err);
/* From now on each key shows its object, unless another object has the key. */
int step_anchor_keys_show(struct db *db, int64_t step, struct error *err);
/* From now on no key shows its object. The step still has the objects. */
int step_anchor_keys_hide(struct db *db, int64_t step, struct error *err);
/* Releases the objects of the made anchor. A version that others are made of stays. */
int step_anchor_keys_let_go(struct db *db, int64_t step, struct error *err);

#endif
