/* What the rows of versions are to callers: shared by what reads, writes and publishes objects.
 * Internal to storage. */
#ifndef STORAGE_OBJECTS_OBJECT_ROW_H
#define STORAGE_OBJECTS_OBJECT_ROW_H

#include "storage/objects/object_conditions.h"
#include "storage/objects/object_facts.h"
#include "storage/versions/version.h"

/* A version row as callers see it; texts as they lie in `version` and the arena. */
int object_of_version(
	const struct version *version, struct arena *arena, struct object *out, struct error *err);
/* The row of a version, as object_find finds it: a marker too. */
int object_find_row(struct db *db, const struct object_ref *ref, struct arena *arena,
	struct version *out, struct error *err);
/* Reads all bytes of a version, in pieces. On a helper: it waits for the disk. */
int object_read_whole(struct store *store, const struct object *object,
	void (*take)(void *owner, struct span bytes), void *owner, struct error *err);
/* The conditions of a write over `current` (NULL: none), and of a delete of `version`, which may be
 * a marker. */
int object_conditions_check_current(const struct object_conditions *conditions,
	const struct version *current, struct error *err);
int object_conditions_check_delete(const struct object_conditions *conditions,
	const struct version *version, struct error *err);
/* Texts copied into the arena, which may overflow. */
struct object_conditions object_conditions_copy(
	const struct object_conditions *conditions, struct arena *arena);
struct object_facts object_facts_copy(const struct object_facts *facts, struct arena *arena);
enum {
	OBJECT_HEADERS_MAX_BYTES = 16 * 1024,
	OBJECT_HEADER_BLOB_MAX_BYTES = 4 * OBJECT_HEADERS_MAX_BYTES
};
/* no_key, no_version: cut the key for the message. */
int object_no_key(struct span key, struct error *err);
int object_no_version(struct span key, struct error *err);

#endif
