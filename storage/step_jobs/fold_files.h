/* The files of two steps, as delta_encode wants them. Readers of a fold see a step as a folder,
 * even if its checkpoint is one file. Files without tensors that differ from the base's come whole.
 * A step that is read from an anchor in the store knows them by name, size and digest alone, so the
 * ones that are needed are fetched. Internal to storage. */
#ifndef STORAGE_STEP_JOBS_FOLD_FILES_H
#define STORAGE_STEP_JOBS_FOLD_FILES_H

#include "storage/objects/scratch.h"
#include "storage/step_jobs/step_source.h"

struct fold_files {
	struct model_files base; /* both borrow from the sources */
	struct model_files next;
	bool *is_fetched; /* for each file of `next`: its bytes are mapped here */
};
/* Call fold_files_release in any case, before the scratch folder and both sources are closed. */
int fold_files_open(struct fold_files *files, struct store *store, const struct step_source *base,
	const struct step_source *next, const struct scratch *scratch, struct error *err);
void fold_files_release(struct fold_files *files);

#endif
