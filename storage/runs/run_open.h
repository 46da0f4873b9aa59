/* Opening a run: what run_open_call and the forks of storage/step_jobs/run_fork.h have in common.
 * Internal to storage. */
#ifndef STORAGE_RUNS_RUN_OPEN_H
#define STORAGE_RUNS_RUN_OPEN_H

#include "storage/run_tables/run_row.h"
#include "storage/runs/run.h"

struct run_open { /* the beginning of such a call; texts in its arena */
	struct call call;
	struct run_open_params params;
	struct run_message message; /* the result */
};
/* As call_new; copies the params. */
void *run_open_new(size_t bytes, const struct call_kind *kind, struct store *store,
	const struct run_open_params *params);

/* Inside the change: adds a run that there is not. *row, whose bucket is given, is filled.
 * precondition, invalid (the name). */
int run_open_add(
	const struct run_open *open, struct db *db, struct run_row *row, struct error *err);

#endif
