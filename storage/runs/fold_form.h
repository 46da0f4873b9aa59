/* A fold as the form of a link of a path. Internal to storage. */
#ifndef STORAGE_RUNS_FOLD_FORM_H
#define STORAGE_RUNS_FOLD_FORM_H

#include "storage/db/db.h"
#include "wire/step_message.h"

/* Reads the fold as a delta. The URLs of its objects are "folds/{from}-{to}/objects/{name}",
 * relative to the run. */
int fold_form_read(
	struct db *db, int64_t fold, struct arena *arena, struct step_form *out, struct error *err);

#endif
