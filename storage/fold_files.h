/* The files of a step as delta_encode wants them: those without tensors that differ from the base's come whole. A step whose files are read from an
 * anchor in the store has them by name, size and digest alone; what is needed of them is fetched. Internal to storage. */
#ifndef STORAGE_FOLD_FILES_H
#define STORAGE_FOLD_FILES_H

#include "storage/scratch.h"
#include "storage/step_source.h"

struct fold_files {
	struct model_files list; /* of `next`; borrows what that has */
	bool *is_fetched;        /* per file: its bytes are mapped here */
};
/* Needs fold_files_release in any case; before the scratch folder and both sources are closed. */
int fold_files_open(struct fold_files *files, struct store *store, const struct step_source *base, const struct step_source *next,
	const struct scratch *scratch, struct error *err);
void fold_files_release(struct fold_files *files);

#endif
