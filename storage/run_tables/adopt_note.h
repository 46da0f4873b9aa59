/* Notices, in the very change that commits an object, that it completes a publish in a foreign
 * convention (storage/run_tables/adopt_layout.h): the publish is noted, and the step worker makes a
 * step of it. Costs a look at an empty index where no run adopts. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_ADOPT_NOTE_H
#define STORAGE_RUN_TABLES_ADOPT_NOTE_H

#include "storage/db/db.h"

struct adopt_object { /* the current version of its key */
	int64_t bucket;
	struct span key;
	struct span version_id; /* the bytes, not their text */
	int64_t modified_ms;
};
/* *out_noted: the step worker has something to do once this is committed. */
int adopt_note(
	struct db *db, const struct adopt_object *object, bool *out_noted, struct error *err);

#endif
