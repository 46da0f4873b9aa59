/* The objects of one view of one step, made and held until one change names them. Internal to
 * storage. */
#ifndef STORAGE_STEP_JOBS_VIEW_MAKE_H
#define STORAGE_STEP_JOBS_VIEW_MAKE_H

#include "storage/objects/stored_folder.h"
#include "storage/run_tables/view_key.h"
#include "storage/step_jobs/step_source.h"

struct view_copy { /* an object that shares the bytes of one of the step's */
	struct span key;
	int64_t version;
};
struct view_made {
	struct arena *arena;
	struct stored_folder stored; /* new objects: their keys begin with `prefix` */
	const char *prefix;
	struct view_copy *copies;
	size_t copy_count;
	struct step_source *step; /* what it was made of */
};

/* A delta upon the step before where that is kept; else a full version. `base_kept`: it is.
 * unsupported when the layout cannot hold the step; errors of step_source_open and delta_encode.
 * Release in any case. Blocking. */
int view_make(struct step_work *work, const struct view_wanted *wanted, bool base_kept,
	struct view_made *out, struct error *err);
/* `taken` as stored_folder_release has it. */
void view_made_release(struct view_made *made, struct store *store, bool taken);

#endif
