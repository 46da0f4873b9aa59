/* deltabucket_patch: the tensors that the caller passed, in any order, become a schema and the
 * places of its tensors. */
#include <stdlib.h>

#include "base/memory.h"
#include "library/call.h"
#include "library/sized.h"
#include "library/tensors.h"
#include "weights/delta/delta_patch.h"

struct patch {
	struct library_call call;
	const struct deltabucket_tensor *tensors;
	size_t count;
	struct schema *schema;
	uint8_t **places; /* in schema order */
	struct delta_patch_params params;
	bool is_spoiled;
};

static int check(struct patch *patch);
static int take_settings(struct patch *patch, const struct deltabucket_patch_settings *settings);
static int take_tensors(struct patch *patch);
static int check_data(struct patch *patch);
static int run(struct patch *patch);

int deltabucket_patch(struct deltabucket_tensor *tensors, size_t count, const char *const *deltas,
	size_t delta_count, const struct deltabucket_patch_settings *settings, int *out_spoiled,
	struct deltabucket_watch *watch, struct deltabucket_error *err)
{
	struct patch patch = {.tensors = tensors, .count = count};
	library_call_begin(&patch.call, NULL, watch);
	patch.params.deltas = deltas;
	patch.params.delta_count = delta_count;
	int result = check(&patch);
	if (result == 0)
		result = take_settings(&patch, settings);
	if (result == 0)
		result = take_tensors(&patch);
	if (result == 0)
		result = check_data(&patch);
	if (result == 0)
		result = run(&patch);
	if (out_spoiled != NULL)
		*out_spoiled = patch.is_spoiled;
	free(patch.places);
	schema_free(patch.schema);
	return library_call_end(&patch.call, result, err);
}

static int check(struct patch *patch)
{
	const struct delta_patch_params *const params = &patch->params;
	return library_check_deltas(params->deltas, params->delta_count, &patch->call.failure);
}

static int take_settings(struct patch *patch, const struct deltabucket_patch_settings *settings)
{
	struct deltabucket_patch_settings taken = DELTABUCKET_PATCH_SETTINGS;
	if (settings != NULL &&
		sized_take(&taken, sizeof(taken), settings, "deltabucket_patch_settings",
			&patch->call.failure) != 0)
		return -1;
	patch->params.proves_first = taken.proves_first != 0;
	patch->params.threads = taken.threads;
	return 0;
}

static int take_tensors(struct patch *patch)
{
	struct error *const err = &patch->call.failure;
	size_t *order = NULL;
	patch->schema = library_schema(patch->tensors, patch->count, &order, err);
	if (patch->schema == NULL)
		return -1;
	patch->places = memory_new_array(patch->count + 1, sizeof(*patch->places));
	for (size_t i = 0; i < patch->count; i++)
		patch->places[i] = patch->tensors[order[i]].data;
	free(order);
	return 0;
}

static int check_data(struct patch *patch)
{
	for (size_t i = 0; i < patch->count; i++)
		if (library_check_data(&patch->tensors[i], &patch->call.failure) != 0)
			return -1;
	return 0;
}

static int run(struct patch *patch)
{
	struct session *const session = &patch->call.session;
	struct progress *const progress =
		progress_new("patching", schema_bytes(patch->schema), session->progress);
	struct delta_stats stats;
	patch->params.schema = patch->schema;
	patch->params.tensors = patch->places;
	patch->params.watch = progress_watch(progress, session->stop);
	const int result =
		delta_patch(&patch->params, &stats, &patch->is_spoiled, &patch->call.failure);
	progress_free(progress);
	return result;
}
