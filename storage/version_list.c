#include "storage/object.h"

int version_list(struct store *const store, const struct version_list_params *const params, struct arena *const arena,
	struct version_list *const out, struct error *const err)
{
	(void)store;
	(void)params;
	(void)arena;
	(void)out;
	return error_set(err, ERROR_UNSUPPORTED, "Listing versions is not implemented.");
}
