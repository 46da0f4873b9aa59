/* Opening a run: the part that run_open_call shares with the forks of storage/step_jobs/run_fork.h.
 * Internal to storage. */
#ifndef STORAGE_RUNS_RUN_OPEN_H
#define STORAGE_RUNS_RUN_OPEN_H

#include "storage/run_tables/run_row.h"
#include "storage/runs/run.h"

struct run_open { /* the first member of such a call; texts lie in the call's arena */
	struct call call;
	struct run_open_params params;
	struct run_message message; /* the result */
};
/* As call_new; copies the params. The struct of `bytes` begins with a struct run_open. */
void *run_open_new(size_t bytes, const struct call_kind *kind, struct store *store,
	const struct run_open_params *params);

/* Inside the change: adds a run that does not exist. The caller gives row->bucket; the rest of *row
 * is filled in. Fails with precondition or invalid (the name). */
int run_open_add(
	const struct run_open *open, struct db *db, struct run_row *row, struct error *err);

#endif
