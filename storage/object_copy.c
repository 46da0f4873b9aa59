#include "storage/object_internal.h"

struct object_copy *object_copy_start(struct store *const store, const struct object_copy_params *const params, struct error *const err)
{
	(void)store;
	(void)params;
	error_set(err, ERROR_UNSUPPORTED, "Copying an object is not implemented.");
	return NULL;
}

int object_copy_outcome(struct object_copy *const copy, struct object *const out, struct error *const err)
{
	(void)copy;
	(void)out;
	return error_set(err, ERROR_UNSUPPORTED, "Copying an object is not implemented.");
}

void object_copy_free(struct object_copy *const copy)
{
	(void)copy;
}
