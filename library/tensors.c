#include "library/tensors.h"

#include <stdlib.h>

#include "base/memory.h"
#include "library/call.h"

enum { SHOWN_NAME_BYTES = 160 };

static int take_tensor(
	const struct deltabucket_tensor *tensor, struct schema_tensor *out, struct error *err);

int library_check_tensor(
	const struct deltabucket_tensor *tensor, enum dtype *out_dtype, struct error *err)
{
	if (library_check(tensor->name, "the name of a tensor", err) != 0)
		return -1;
	if (!dtype_parse(span_text(tensor->dtype), out_dtype))
		return error_set(err, ERROR_INVALID,
			"the tensor '%.*s' has the dtype \"%.40s\", which safetensors does not know; "
			"\"BF16\" and \"F32\" are two of those it does",
			SHOWN_NAME_BYTES, tensor->name, tensor->dtype != NULL ? tensor->dtype : "");
	if (tensor->rank > 0 && tensor->shape == NULL)
		return error_set(err, ERROR_INVALID, "the tensor '%.*s' has no shape",
			SHOWN_NAME_BYTES, tensor->name);
	if (tensor->rank > UINT8_MAX)
		return error_set(err, ERROR_INVALID,
			"the tensor '%.*s' has %zu dimensions; it may have %d", SHOWN_NAME_BYTES,
			tensor->name, tensor->rank, UINT8_MAX);
	return 0;
}

int library_check_data(const struct deltabucket_tensor *tensor, struct error *err)
{
	if (tensor->data != NULL || tensor->bytes == 0)
		return 0;
	return error_set(err, ERROR_INVALID, "the tensor '%.*s' has no data", SHOWN_NAME_BYTES,
		tensor->name);
}

struct schema *library_schema(const struct deltabucket_tensor *tensors, size_t count,
	size_t **out_places, struct error *err)
{
	if (count > 0 && library_check(tensors, "tensors", err) != 0)
		return NULL;
	struct schema_tensor *const taken = memory_new_array(count + 1, sizeof(*taken));
	struct schema *schema = NULL;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++)
		result = take_tensor(&tensors[i], &taken[i], err);
	if (result == 0)
		schema = schema_of_tensors(taken, count, err);
	free(taken);
	if (schema == NULL)
		return NULL;
	*out_places = memory_new_array(count + 1, sizeof(**out_places));
	for (size_t i = 0; i < count; i++) {
		const ptrdiff_t place = schema_find(schema, span_text(tensors[i].name));
		ASSERT(place >= 0);
		(*out_places)[place] = i;
	}
	return schema;
}

static int take_tensor(
	const struct deltabucket_tensor *tensor, struct schema_tensor *out, struct error *err)
{
	enum dtype dtype;
	if (library_check_tensor(tensor, &dtype, err) != 0)
		return -1;
	*out = (struct schema_tensor){
		.name = span_text(tensor->name),
		.dtype = dtype,
		.rank = (unsigned)tensor->rank,
		.shape = tensor->shape,
		.bytes = tensor->bytes,
	};
	return 0;
}
