/* The sweeper's work on folds: it releases the objects of folds that are marked so, of direct folds
 * that no path has named for FOLD_UNUSED_MS, and of all folds of an ended run. Each call is one
 * slice inside a change. */
#ifndef STORAGE_STEP_JOBS_FOLD_SWEEP_H
#define STORAGE_STEP_JOBS_FOLD_SWEEP_H

#include "storage/db/db.h"

int fold_sweep_has_work(struct db *db, int64_t now_ms, bool *out_found, struct error *err);
int fold_sweep(struct db *db, int64_t now_ms, bool *out_found, struct error *err);
/* *out_more: objects of one of the run's folds were released, and there may be other folds. */
int fold_sweep_run(struct db *db, int64_t run, bool *out_more, struct error *err);

#endif
