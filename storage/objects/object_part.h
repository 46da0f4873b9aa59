/* The parts in which an object was uploaded. */
#ifndef STORAGE_OBJECTS_OBJECT_PART_H
#define STORAGE_OBJECTS_OBJECT_PART_H

#include "storage/versions/object.h"

/* Finds part `number` of a completed multipart object, as it was uploaded. A single PUT has one
 * part, number 1. no_part when there is no such part. */
int object_find_part(struct store *store, const struct object *object, uint32_t number,
	struct object_part *out, struct error *err);
/* Up to `limit` parts with a number above `after`, in order. */
struct object_parts_range {
	uint32_t after;
	size_t limit;
};
struct object_parts {
	struct object_part *parts;
	size_t count;
	bool truncated;
};
int object_list_parts(struct store *store, const struct object *object,
	struct object_parts_range range, struct arena *arena, struct object_parts *out,
	struct error *err);

#endif
