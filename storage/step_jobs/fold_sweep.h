/* What the sweeper does for folds: lets go of those that are being released, of direct ones that no
 * path has named for FOLD_UNUSED_MS, and of all that an ended run had. Each call is one slice
 * inside a change. */
#ifndef STORAGE_STEP_JOBS_FOLD_SWEEP_H
#define STORAGE_STEP_JOBS_FOLD_SWEEP_H

#include "storage/db/db.h"

int fold_sweep_has_work(struct db *db, int64_t now_ms, bool *out_found, struct error *err);
int fold_sweep(struct db *db, int64_t now_ms, bool *out_found, struct error *err);
/* *out_more: one of the run's folds was let go of, and there may be others. */
int fold_sweep_run(struct db *db, int64_t run, bool *out_more, struct error *err);

#endif
