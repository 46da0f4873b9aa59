/* Removing steps by retention. Internal to storage. */
#ifndef STORAGE_RUNS_STEP_COLLECT_H
#define STORAGE_RUNS_STEP_COLLECT_H

#include "storage/core/store.h"
#include "storage/run_tables/run_row.h"

/* Inside a change: removes at most STEP_RETAIN_AT_ONCE steps and counts them out of the run's row,
 * which is not written. */
enum { STEP_RETAIN_AT_ONCE = 64 };
int step_retain(struct store *store, struct db *db, struct run_row *run, struct error *err);

#endif
