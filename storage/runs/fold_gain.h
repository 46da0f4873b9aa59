/* Estimates how much a direct fold would save, before it is made. Internal to storage. */
#ifndef STORAGE_RUNS_FOLD_GAIN_H
#define STORAGE_RUNS_FOLD_GAIN_H

#include "storage/db/db.h"

/* The part of the best path's bytes that a fold must save to be worth making. */
#define FOLD_GAIN_LEAST 0.15

/* The bytes of a fold over so many steps, as a part of the sum of the single deltas. Measured on
 * bf16 weights under RL, where later steps change again most of what one step changed. */
double fold_gain_ratio(uint64_t steps);
/* A fold that could be made, from a step to a later one. */
struct fold_candidate {
	int64_t run;
	uint64_t from;
	uint64_t to;
};
/* Whether the fold can be expected to save FOLD_GAIN_LEAST of `bytes`, the bytes of the best path
 * (UINT64_MAX: there is none). The estimate takes the deltas between the two steps, and compares
 * the run's newest fold with its own deltas. */
int fold_gain_is_worth(struct db *db, const struct fold_candidate *fold, uint64_t bytes,
	bool *out_worth, struct error *err);

#endif
