/* What a foreign publish has brought: the current objects below its keys, and whether they are a
 * delta. Internal to storage. */
#ifndef STORAGE_STEP_JOBS_ADOPT_OBJECTS_H
#define STORAGE_STEP_JOBS_ADOPT_OBJECTS_H

#include "storage/run_tables/adopt_row.h"
#include "storage/runs/run_change.h"

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

/* Objects without a digest get one: their bytes are read. Texts lie in the arena. not_found when
 * there is none; too_large; what an index.json is refused with. Blocking. */
int adopt_objects_find(struct store *store, int64_t bucket, const struct adoption *adoption,
	struct arena *arena, struct adopt_objects *out, struct error *err);
/* The current object of a key, called `name` in the form. Texts lie in the arena. no_key. */
int adopt_objects_take(struct store *store, int64_t bucket, struct span key, struct span name,
	struct arena *arena, struct step_object *out, int64_t *out_version, struct error *err);
/* A small object, whole, in the arena. too_large over `cap`; no_key. */
int adopt_objects_read(struct store *store, struct span bucket, struct span key, size_t cap,
	struct arena *arena, struct span *out, struct error *err);

#endif
