/* What a direct fold would save, judged before it is made. Internal to storage. */
#ifndef STORAGE_RUNS_FOLD_GAIN_H
#define STORAGE_RUNS_FOLD_GAIN_H

#include "storage/db/db.h"

#define FOLD_GAIN_LEAST \
	0.15 /* part of the best way there is that a fold has to save to be worth its making */

/* Part of the sum of the single deltas that a fold of as many steps takes: as measured on bf16
 * weights under RL, where most of what one step changes is changed again by later ones. */
double fold_gain_ratio(uint64_t steps);
/* Whether a fold from `from` to `to` may be expected to save FOLD_GAIN_LEAST of `bytes`, the best
 * way there is (UINT64_MAX: none). Judged by the deltas between them and by what the run's newest
 * fold takes beside its own. */
int fold_gain_is_worth(struct db *db, int64_t run, uint64_t from, uint64_t to, uint64_t bytes,
	bool *out_worth, struct error *err);

#endif
