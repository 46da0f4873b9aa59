/* Notes publishes of trainers that do not know steps. When an object completes such a publish
 * (storage/run_tables/adopt_layout.h), the change that commits the object also notes the publish,
 * and the step worker later makes a step of it. Where no run adopts, this costs a look into an
 * empty index. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_ADOPT_NOTE_H
#define STORAGE_RUN_TABLES_ADOPT_NOTE_H

#include "storage/db/db.h"

struct adopt_object { /* the current version of a key */
	int64_t bucket;
	struct span key;
	struct span version_id; /* the bytes, not their text */
	int64_t modified_ms;
};
/* *out_noted: whether the step worker has work once the change is committed. */
int adopt_note(
	struct db *db, const struct adopt_object *object, bool *out_noted, struct error *err);

#endif
