/* Small changes to folds that a path leaves behind: nobody waits for them. */
#ifndef STORAGE_RUNS_FOLD_CHANGE_H
#define STORAGE_RUNS_FOLD_CHANGE_H

#include "storage/core/store.h"

/* a use is written down when the one known is older */
enum { FOLD_TOUCH_AFTER_MS = 10 * 60 * 1000 };

/* Queues the direct fold, where the run has room for one more; the oldest of too many go. */
void fold_change_request(struct store *store, int64_t run, uint64_t from, uint64_t to);
/* A path named the fold. */
void fold_change_touch(struct store *store, int64_t fold);

#endif
