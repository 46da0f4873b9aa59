/* Makes the objects of one view of one step. New ones are hidden versions (scratch.h) until one
 * change names them. Internal to storage. */
#ifndef STORAGE_STEP_JOBS_VIEW_MAKE_H
#define STORAGE_STEP_JOBS_VIEW_MAKE_H

#include "storage/objects/stored_folder.h"
#include "storage/run_tables/view_key.h"
#include "storage/step_jobs/step_source.h"

struct view_copy { /* an object that shares the bytes of an object of the step */
	struct span key;
	int64_t version;
};
struct view_made {
	struct arena *arena;
	struct stored_folder stored; /* new objects, whose keys begin with `prefix` */
	const char *prefix;
	struct view_copy *copies;
	size_t copy_count;
	struct step_source *step; /* that it was made of */
};

/* Makes a delta upon the step before if `base_kept` says that this is kept; otherwise a full
 * version. unsupported when the layout cannot hold the step; fails as step_source_open and
 * delta_encode do. Release *out in any case. Blocking. */
int view_make(struct step_work *work, const struct view_wanted *wanted, bool base_kept,
	struct view_made *out, struct error *err);
/* `taken` is that of stored_folder_release. */
void view_made_release(struct view_made *made, struct store *store, bool taken);

#endif
