/* The objects of a foreign publish: the current ones below its keys, and whether they are a delta.
 * Internal to storage. */
#ifndef STORAGE_STEP_JOBS_ADOPT_OBJECTS_H
#define STORAGE_STEP_JOBS_ADOPT_OBJECTS_H

#include "storage/core/store.h"
#include "storage/run_tables/adopt_row.h"
#include "storage/runs/run.h"

struct adopt_objects {
	struct step_object *objects; /* sorted by name; version and digest set */
	int64_t *versions;           /* the rows of their versions, in the same order */
	size_t count;
	bool is_delta;
	/* The version and its base, from the index of a delta: ids in ModelExpress, names in other
	 * conventions. {NULL,0}: not given. */
	struct span version;
	struct span base_version;
};

/* Where the objects lie, and the arena for all that is found. */
struct adopt_place {
	struct store *store;
	struct bucket_ref bucket; /* with its id */
	struct arena *arena;
};
/* Objects without a digest get one: their bytes are read. not_found when there are no objects,
 * too_large when there are too many, and what an index.json is refused with. Blocking. */
int adopt_objects_find(const struct adopt_place *place, const struct adoption *adoption,
	struct adopt_objects *out, struct error *err);
/* The current object of a key, which the form calls `name`. no_key. */
int adopt_objects_take(const struct adopt_place *place, struct span key, struct span name,
	struct step_object *out, int64_t *out_version, struct error *err);
/* A small object, whole, in the arena. too_large over `cap` bytes; no_key. */
int adopt_objects_read(const struct adopt_place *place, struct span key, size_t cap,
	struct span *out, struct error *err);

#endif
