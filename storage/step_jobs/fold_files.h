/* The files of two steps as delta_encode wants them. To its readers a step is a folder, also where
 * its checkpoint is one file. Files without tensors that differ from the base's come whole: a step
 * that is read from an anchor in the store has them by name, size and digest alone, so what is
 * needed of them is fetched. Internal to storage. */
#ifndef STORAGE_STEP_JOBS_FOLD_FILES_H
#define STORAGE_STEP_JOBS_FOLD_FILES_H

#include "storage/objects/scratch.h"
#include "storage/step_jobs/step_source.h"

struct fold_files {
	struct model_files base; /* both borrow what the sources have */
	struct model_files next;
	bool *is_fetched; /* per file of `next`: its bytes are mapped here */
};
/* Needs fold_files_release in any case; before the scratch folder and both sources are closed. */
int fold_files_open(struct fold_files *files, struct store *store, const struct step_source *base,
	const struct step_source *next, const struct scratch *scratch, struct error *err);
void fold_files_release(struct fold_files *files);

#endif
