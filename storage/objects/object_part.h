/* The parts that an object was uploaded in. */
#ifndef STORAGE_OBJECTS_OBJECT_PART_H
#define STORAGE_OBJECTS_OBJECT_PART_H

#include "storage/versions/object.h"

/* Part `number` of a completed multipart object, as it was uploaded. no_part when there is none of
 * this number. A single PUT has one part, number 1. */
int object_find_part(struct store *store, const struct object *object, uint32_t number,
	struct object_part *out, struct error *err);
/* Up to `limit` parts with a number above `after`, in order. */
int object_list_parts(struct store *store, const struct object *object, uint32_t after,
	size_t limit, struct arena *arena, struct object_part **out, size_t *out_count,
	bool *out_truncated, struct error *err);

#endif
