/* Small changes to folds that follow from the answer of a path. No caller waits for them. */
#ifndef STORAGE_RUNS_FOLD_CHANGE_H
#define STORAGE_RUNS_FOLD_CHANGE_H

#include "storage/core/store.h"

/* a use is recorded when the recorded one is this old */
enum { FOLD_MARK_USED_AFTER_MS = 10 * 60 * 1000 };

/* Wants the direct fold, if the run has room for one more, and releases those above the limit. */
void fold_change_request(struct store *store, int64_t run, uint64_t from, uint64_t to);
/* Records that a path named the fold. */
void fold_change_mark_used(struct store *store, int64_t fold);

#endif
