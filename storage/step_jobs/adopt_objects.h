/* What a foreign publish has brought: the current objects below its keys, and whether they are a
 * delta. Internal to storage. */
#ifndef STORAGE_STEP_JOBS_ADOPT_OBJECTS_H
#define STORAGE_STEP_JOBS_ADOPT_OBJECTS_H

#include "storage/core/store.h"
#include "storage/run_tables/adopt_row.h"
#include "storage/runs/run.h"

struct adopt_objects {
	struct step_object *objects; /* sorted by name; version and digest set */
	int64_t *versions;           /* rows, side by side with them */
	size_t count;
	bool is_delta;
	/* Of a delta with an index, as that says; a name in other conventions. {NULL,0}: not
	 * said. */
	struct span version;
	struct span base_version;
};

/* Where it lies, and the arena of all that is found there. */
struct adopt_place {
	struct store *store;
	struct bucket_ref bucket; /* with its id */
	struct arena *arena;
};
/* Objects without a digest get one: their bytes are read. not_found when there is none; too_large;
 * what an index.json is refused with. Blocking. */
int adopt_objects_find(const struct adopt_place *place, const struct adoption *adoption,
	struct adopt_objects *out, struct error *err);
/* The current object of a key, called `name` in the form. no_key. */
int adopt_objects_take(const struct adopt_place *place, struct span key, struct span name,
	struct step_object *out, int64_t *out_version, struct error *err);
/* A small object, whole. too_large over `cap`; no_key. */
int adopt_objects_read(const struct adopt_place *place, struct span key, size_t cap,
	struct span *out, struct error *err);

#endif
