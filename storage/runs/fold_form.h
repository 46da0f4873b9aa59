/* A fold as the form of a path's link, and its objects by name. Internal to storage. */
#ifndef STORAGE_RUNS_FOLD_FORM_H
#define STORAGE_RUNS_FOLD_FORM_H

#include "storage/db/db.h"
#include "wire/step_message.h"

/* A delta whose objects' URLs are "folds/{from}-{to}/objects/{name}", relative to the run. */
int fold_form_read(
	struct db *db, int64_t fold, struct arena *arena, struct step_form *out, struct error *err);

#endif
