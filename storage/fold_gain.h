/* What a direct fold would save, judged before it is made. Internal to storage. */
#ifndef STORAGE_FOLD_GAIN_H
#define STORAGE_FOLD_GAIN_H

#include "storage/db.h"

/* Part of the sum of the single deltas, in percent, that a fold of as many steps takes: as measured on bf16 weights under RL, where most of what
 * one step changes is changed again by later ones. */
unsigned fold_gain_percent(uint64_t steps);
/* Whether a fold from `from` to `to` would take at least a seventh less than `bytes`, the best way there is (UINT64_MAX: none). */
int fold_gain_is_worth(struct db *db, int64_t run, uint64_t from, uint64_t to, uint64_t bytes, bool *out_worth, struct error *err);

#endif
