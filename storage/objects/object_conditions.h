/* What a request asks of the version that it would write over or delete. */
#ifndef STORAGE_OBJECTS_OBJECT_CONDITIONS_H
#define STORAGE_OBJECTS_OBJECT_CONDITIONS_H

#include "storage/versions/object.h"

/* Conditions on the current version (of a delete that names one: on that version), judged by the
 * committer. Header values as sent (quotes, W/, lists, *), empty: absent. */
struct object_conditions {
	struct span if_match;
	struct span if_none_match;
	bool has_size; /* deletes */
	uint64_t size;
	bool has_modified; /* deletes; compared in whole seconds */
	int64_t modified_ms;
};
/* 0; precondition; no_key for If-Match on nothing. `object` NULL: no current version, or a
 * marker. */
int object_conditions_check(
	const struct object_conditions *conditions, const struct object *object, struct error *err);

#endif
