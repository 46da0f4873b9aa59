#include "storage/object_internal.h"

static struct object_part whole(const struct object *const object)
{
	return (struct object_part){.number = 1, .size = object->size, .checksum = object->checksum};
}

int object_find_part(struct store *const store, const struct object *const object, const uint32_t number, struct object_part *const out,
	struct error *const err)
{
	(void)store;
	if (object->part_count > 0)
		return error_set(err, ERROR_UNSUPPORTED, "Parts of multipart objects are not implemented.");
	if (number != 1)
		return error_set(err, ERROR_NO_PART, "The object has one part; there is no part %lu.", (unsigned long)number);
	*out = whole(object);
	return 0;
}

int object_list_parts(struct store *const store, const struct object *const object, const uint32_t after, const size_t limit,
	struct arena *const arena, struct object_part **const out, size_t *const out_count, bool *const out_truncated, struct error *const err)
{
	(void)store;
	if (object->part_count > 0)
		return error_set(err, ERROR_UNSUPPORTED, "Parts of multipart objects are not implemented.");
	*out = arena_take_array(arena, 1, sizeof(**out));
	if (*out == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The request's memory ran out while listing the parts of an object.");
	*out_count = after == 0 && limit > 0 ? 1 : 0;
	*out_truncated = after == 0 && limit == 0;
	**out = whole(object);
	return 0;
}
