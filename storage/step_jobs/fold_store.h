/* Stores a fold that was made in a local folder, so that paths take it: its files become hidden
 * versions, then one change names them all. Blocking: never on a reactor or the committer. */
#ifndef STORAGE_STEP_JOBS_FOLD_STORE_H
#define STORAGE_STEP_JOBS_FOLD_STORE_H

#include "storage/core/store.h"
#include "storage/run_tables/fold_row.h"

struct fold_store_params {
	int64_t fold; /* its row, which must still be wanted: else nothing is kept (precondition) */
	int64_t bucket;
	struct span run; /* its name, for the objects' keys */
	/* all files below it become objects of the fold, named by their paths in it */
	const char *folder;
	struct span format;
};
/* After a failure nothing of it stays. */
int fold_store(struct store *store, const struct fold_store_params *params, struct error *err);
/* The fold cannot be made: it is not tried again, and no caller waits for it any longer. */
int fold_refuse(struct store *store, int64_t fold, struct error *err);

#endif
