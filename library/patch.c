/* deltabucket_patch: the tensors that the caller passed, in any order, become a schema and the
 * places of its tensors. */
#include <stdlib.h>

#include "base/memory.h"
#include "library/call.h"
#include "library/sized.h"
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
static int take_tensor(
	const struct deltabucket_tensor *tensor, struct schema_tensor *out, struct error *err);
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
	struct error *const err = &patch->call.failure;
	if (patch->count > 0 && library_check(patch->tensors, "tensors", err) != 0)
		return -1;
	return library_check_deltas(params->deltas, params->delta_count, err);
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
	struct schema_tensor *const taken = memory_new_array(patch->count + 1, sizeof(*taken));
	int result = 0;
	for (size_t i = 0; i < patch->count && result == 0; i++)
		result = take_tensor(&patch->tensors[i], &taken[i], err);
	if (result == 0)
		patch->schema = schema_of_tensors(taken, patch->count, err);
	free(taken);
	if (patch->schema == NULL)
		return -1;
	patch->places = memory_new_array(patch->count + 1, sizeof(*patch->places));
	for (size_t i = 0; i < patch->count; i++) {
		const struct deltabucket_tensor *const tensor = &patch->tensors[i];
		const ptrdiff_t place = schema_find(patch->schema, span_text(tensor->name));
		ASSERT(place >= 0);
		patch->places[place] = tensor->data;
	}
	return 0;
}

static int take_tensor(
	const struct deltabucket_tensor *tensor, struct schema_tensor *out, struct error *err)
{
	enum dtype dtype;
	if (library_check(tensor->name, "the name of a tensor", err) != 0)
		return -1;
	if (!dtype_parse(span_text(tensor->dtype), &dtype))
		return error_set(err, ERROR_INVALID,
			"the tensor %s has no dtype that safetensors knows, like BF16",
			tensor->name);
	if ((tensor->bytes > 0 && tensor->data == NULL) ||
		(tensor->rank > 0 && tensor->shape == NULL))
		return error_set(
			err, ERROR_INVALID, "the tensor %s has no data or no shape", tensor->name);
	if (tensor->rank > UINT8_MAX)
		return error_set(err, ERROR_INVALID, "the tensor %s has %zu dimensions",
			tensor->name, tensor->rank);
	*out = (struct schema_tensor){
		.name = span_text(tensor->name),
		.dtype = dtype,
		.rank = (unsigned)tensor->rank,
		.shape = tensor->shape,
		.bytes = tensor->bytes,
	};
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
