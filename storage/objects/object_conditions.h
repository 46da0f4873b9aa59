/* Conditions of a request on the version that it would write over or delete. */
#ifndef STORAGE_OBJECTS_OBJECT_CONDITIONS_H
#define STORAGE_OBJECTS_OBJECT_CONDITIONS_H

#include "storage/versions/object.h"

/* Conditions on the current version, or, for a delete that names a version, on that one. The
 * committer judges them. Header values are as sent (quotes, W/, lists, *); an empty one is
 * absent. */
struct object_conditions {
	struct span if_match;
	struct span if_none_match;
	bool has_size; /* deletes */
	uint64_t size;
	bool has_modified; /* deletes; compared in whole seconds */
	int64_t modified_ms;
};
/* 0; precondition when one does not hold; no_key for If-Match without an object. `object` is NULL
 * when the current version is a marker or there is none. */
int object_conditions_check(
	const struct object_conditions *conditions, const struct object *object, struct error *err);

#endif
