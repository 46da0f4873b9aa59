/* Removing steps by retention. Internal to storage. */
#ifndef STORAGE_RUNS_STEP_COLLECT_H
#define STORAGE_RUNS_STEP_COLLECT_H

#include "storage/core/store.h"
#include "storage/run_tables/run_row.h"

/* Inside a change: at most STEP_RETAIN_AT_ONCE steps at a time, which are counted out of the run's
 * row; that is not written. */
enum { STEP_RETAIN_AT_ONCE = 64 };
int step_retain(struct store *store, struct db *db, struct run_row *run, struct error *err);

#endif
