/* A fold that was made in a local folder becomes one that paths take: its files are stored as
 * hidden versions, then one change names them all. Blocking: never on a reactor or the
 * committer. */
#ifndef STORAGE_STEP_JOBS_FOLD_STORE_H
#define STORAGE_STEP_JOBS_FOLD_STORE_H

#include "storage/core/store.h"
#include "storage/run_tables/fold_row.h"

struct fold_store_params {
	int64_t fold; /* row, still wanted: else nothing is kept (precondition) */
	int64_t bucket;
	struct span run; /* its name, for the objects' keys */
	/* all files below it are objects of the fold, named by their paths in it */
	const char *folder;
	struct span format;
};
/* On failure nothing of it stays. */
int fold_store(struct store *store, const struct fold_store_params *params, struct error *err);
/* It cannot be made: it is not tried again, and nobody waits for it any longer. */
int fold_refuse(struct store *store, int64_t fold, struct error *err);

#endif
