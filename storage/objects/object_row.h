/* Objects and the rows of their versions: shared by code that reads, writes and publishes objects.
 * Internal to storage. */
#ifndef STORAGE_OBJECTS_OBJECT_ROW_H
#define STORAGE_OBJECTS_OBJECT_ROW_H

#include "storage/objects/object_conditions.h"
#include "storage/objects/object_facts.h"
#include "storage/versions/version.h"

/* The object of a version row. Its texts lie in those of `version` and in the arena. */
int object_of_version(
	const struct version *version, struct arena *arena, struct object *out, struct error *err);
/* Finds the row of a version as object_find does, but also a current marker. */
int object_find_row(struct db *db, const struct object_ref *ref, struct arena *arena,
	struct version *out, struct error *err);
/* Reads all bytes of a version, piece by piece. Waits for the disk: call it on a helper. */
int object_read_whole(struct store *store, const struct object *object,
	void (*take)(void *owner, struct span bytes), void *owner, struct error *err);
/* Judges the conditions of a write over `current` (NULL: none), and of a delete of `version`, which
 * may be a marker. */
int object_conditions_check_current(const struct object_conditions *conditions,
	const struct version *current, struct error *err);
int object_conditions_check_delete(const struct object_conditions *conditions,
	const struct version *version, struct error *err);
/* These copy the texts into the arena, which may overflow. */
struct object_conditions object_conditions_copy(
	const struct object_conditions *conditions, struct arena *arena);
struct object_facts object_facts_copy(const struct object_facts *facts, struct arena *arena);
enum {
	OBJECT_HEADERS_MAX_BYTES = 16 * 1024,
	OBJECT_HEADER_BLOB_MAX_BYTES = 4 * OBJECT_HEADERS_MAX_BYTES
};
/* Set the errors no_key and no_version, with the key cut to 200 bytes. Return -1. */
int object_no_key(struct span key, struct error *err);
int object_no_version(struct span key, struct error *err);

#endif
