/* The writer of safetensors.h. It uses the reference writer's order, spelling and padding, so equal
 * tensors give equal files, whichever program wrote them. */
#include <stdlib.h>

#include "weights/model/json_scan.h"
#include "weights/model/safetensors.h"

enum { LENGTH_BYTES = 8, SHOWN_NAME_BYTES = 160 };

static int check_names(const struct safetensors_tensor *tensors, size_t count, struct error *err);
static int safetensors_writer_order_names(const void *left, const void *right);
static int refuse_name(struct span name, const char *why, struct error *err);
static int safetensors_writer_order(const void *left, const void *right);
static int place(struct safetensors_tensor *tensor, uint64_t *position, struct error *err);
static void print_json(const struct safetensors_tensor *tensors, size_t count,
	const struct safetensors_metadata *metadata, size_t metadata_count, struct buffer *out);
static void print_metadata(
	const struct safetensors_metadata *items, size_t count, struct buffer *out);
static void print_tensor(const struct safetensors_tensor *tensor, struct buffer *out);

int safetensors_write_header(struct safetensors_tensor *tensors, size_t count,
	const struct safetensors_metadata *metadata, size_t metadata_count, struct buffer *out,
	struct error *err)
{
	ASSERT(tensors != NULL || count == 0);
	ASSERT(metadata != NULL || metadata_count == 0);
	if (check_names(tensors, count, err) != 0)
		return -1;
	if (count > 0)
		qsort(tensors, count, sizeof(tensors[0]), safetensors_writer_order);
	uint64_t position = 0;
	for (size_t i = 0; i < count; i++)
		if (place(&tensors[i], &position, err) != 0)
			return -1;
	const size_t start = out->len;
	static const uint8_t no_length[LENGTH_BYTES];
	buffer_add(out, no_length, sizeof(no_length));
	print_json(tensors, count, metadata, metadata_count, out);
	while (!buffer_failed(out) && (out->len - start) % LENGTH_BYTES != 0)
		buffer_add_byte(out, ' ');
	if (buffer_check(out, "the safetensors header", err) != 0)
		return -1;
	const uint64_t size = out->len - start - LENGTH_BYTES;
	if (size > SAFETENSORS_HEADER_MAX_BYTES)
		return error_set(err, ERROR_TOO_LARGE,
			"the safetensors header would have %llu bytes, over the limit of %llu",
			(unsigned long long)size, (unsigned long long)SAFETENSORS_HEADER_MAX_BYTES);
	for (int i = 0; i < LENGTH_BYTES; i++)
		out->data[start + (size_t)i] = (uint8_t)(size >> (8 * i));
	return 0;
}

/* Sorts by name on its own: the file is sorted by dtype first, and tensors of one name may differ
 * in dtype. */
static int check_names(const struct safetensors_tensor *tensors, size_t count, struct error *err)
{
	struct buffer names;
	buffer_init(&names, SIZE_MAX - 1);
	for (size_t i = 0; i < count; i++) {
		const struct safetensors_tensor *const tensor = &tensors[i];
		buffer_add(&names, &tensor, sizeof(tensor));
	}
	int result = buffer_check(&names, "the table of tensor names", err);
	const struct safetensors_tensor **const sorted =
		(const struct safetensors_tensor **)names.data;
	if (result == 0 && count > 0)
		qsort(sorted, count, sizeof(sorted[0]), safetensors_writer_order_names);
	for (size_t i = 0; result == 0 && i < count; i++) {
		if (span_equal_text(sorted[i]->name, "__metadata__"))
			result = refuse_name(sorted[i]->name, "has the reserved name", err);
		else if (i > 0 && span_equal(sorted[i - 1]->name, sorted[i]->name))
			result = refuse_name(sorted[i]->name, "is given twice", err);
	}
	buffer_release(&names);
	return result;
}

static int safetensors_writer_order_names(const void *left, const void *right)
{
	const struct safetensors_tensor *const *const a = left;
	const struct safetensors_tensor *const *const b = right;
	return span_compare((*a)->name, (*b)->name);
}

static int refuse_name(struct span name, const char *why, struct error *err)
{
	const int shown = (int)(name.len < SHOWN_NAME_BYTES ? name.len : SHOWN_NAME_BYTES);
	return error_set(err, ERROR_INVALID,
		"a safetensors file cannot be written: tensor '%.*s' %s", shown, name.data, why);
}

static int safetensors_writer_order(const void *left, const void *right)
{
	const struct safetensors_tensor *const a = left;
	const struct safetensors_tensor *const b = right;
	if (a->dtype != b->dtype)
		return a->dtype < b->dtype ? -1 : 1;
	return span_compare(a->name, b->name);
}

static int place(struct safetensors_tensor *tensor, uint64_t *position, struct error *err)
{
	uint64_t bits;
	uint64_t elements = 1;
	bool overflow = false;
	for (unsigned i = 0; i < tensor->rank; i++)
		overflow =
			overflow || __builtin_mul_overflow(elements, tensor->shape[i], &elements);
	overflow = overflow || __builtin_mul_overflow(elements, dtype_bits(tensor->dtype), &bits);
	if (overflow || bits % 8 != 0)
		return refuse_name(tensor->name,
			"has a shape that overflows or does not fill whole bytes", err);
	tensor->elements = elements;
	tensor->begin = *position;
	if (__builtin_add_overflow(*position, bits / 8, &tensor->end))
		return refuse_name(tensor->name, "ends beyond the largest offset", err);
	*position = tensor->end;
	return 0;
}

static void print_json(const struct safetensors_tensor *tensors, size_t count,
	const struct safetensors_metadata *metadata, size_t metadata_count, struct buffer *out)
{
	buffer_add_byte(out, '{');
	if (metadata_count > 0)
		print_metadata(metadata, metadata_count, out);
	for (size_t i = 0; i < count; i++) {
		if (i > 0 || metadata_count > 0)
			buffer_add_byte(out, ',');
		print_tensor(&tensors[i], out);
	}
	buffer_add_byte(out, '}');
}

static void print_metadata(
	const struct safetensors_metadata *items, size_t count, struct buffer *out)
{
	buffer_add_text(out, "\"__metadata__\":{");
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			buffer_add_byte(out, ',');
		json_scan_quote(items[i].key, out);
		buffer_add_byte(out, ':');
		json_scan_quote(items[i].value, out);
	}
	buffer_add_byte(out, '}');
}

static void print_tensor(const struct safetensors_tensor *tensor, struct buffer *out)
{
	json_scan_quote(tensor->name, out);
	buffer_format(out, ":{\"dtype\":\"%s\",\"shape\":[", dtype_name(tensor->dtype));
	for (unsigned i = 0; i < tensor->rank; i++)
		buffer_format(out, i > 0 ? ",%llu" : "%llu", (unsigned long long)tensor->shape[i]);
	buffer_format(out, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)tensor->begin,
		(unsigned long long)tensor->end);
}
