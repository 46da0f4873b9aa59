/* A schema owns copies of its names and shapes in an arena. The tensors are always sorted by name:
 * each shard is sorted by itself and merged, so a duplicate is found when it is added. A name must
 * not have a zero byte, because the text form ends names with one and two schemas must never have
 * the same text. */
#include "weights/model/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/memory.h"

enum { SHOWN_NAME_BYTES = 160, FORM_TEXT_BYTES = 48 };
#define SCHEMA_CAP_BYTES (UINT64_C(4) << 30)

struct schema {
	struct arena *arena;
	struct buffer tensors; /* struct schema_tensor */
	uint64_t bytes;
	bool finished;
};

static int check_tensor(const struct schema_tensor *tensor, struct error *err);
static bool count_bytes(const struct schema_tensor *tensor, uint64_t *out_bytes);
static size_t table_count(const struct schema *schema);
static int append(struct schema *schema, const struct schema_tensor *from, struct error *err);
static int refuse(struct span name, enum error_kind kind, const char *what, struct error *err);
static int merge(struct schema *schema, size_t old, struct error *err);
static struct schema_tensor *table(const struct schema *schema);
static int schema_order_by_name(const void *left, const void *right);
static void print_tensor(const struct schema_tensor *tensor, struct buffer *out);
static int parse_tensor(
	struct schema *schema, struct span *rest, struct buffer *shape, struct error *err);
static bool take_field(struct span *rest, struct span *out_field);
static bool parse_shape(struct span text, struct buffer *shape, uint64_t *out_elements);
static bool same_tensor(const struct schema_tensor *a, const struct schema_tensor *b);
static int refuse_form(
	const struct schema_tensor *ours, const struct schema_tensor *theirs, struct error *err);
static void print_form(const struct schema_tensor *tensor, char out[FORM_TEXT_BYTES]);
static struct digest128 digest_text(const struct schema *schema, const struct digest128 *digests);

struct schema *schema_new(void)
{
	struct schema *const schema = memory_new(sizeof(*schema));
	schema->arena = arena_new(SCHEMA_CAP_BYTES);
	buffer_init(&schema->tensors, SCHEMA_CAP_BYTES);
	return schema;
}

void schema_free(struct schema *schema)
{
	if (schema == NULL)
		return;
	arena_free(schema->arena);
	buffer_release(&schema->tensors);
	free(schema);
}

int schema_add(struct schema *schema, const struct safetensors *shard, struct error *err)
{
	ASSERT(!schema->finished);
	const size_t old = table_count(schema);
	for (size_t i = 0; i < safetensors_count(shard); i++) {
		const struct safetensors_tensor *const from = safetensors_tensor(shard, i);
		const struct schema_tensor tensor = {
			.name = from->name,
			.dtype = from->dtype,
			.rank = from->rank,
			.shape = from->shape,
			.bytes = from->end - from->begin,
		};
		if (append(schema, &tensor, err) != 0)
			return -1;
	}
	return merge(schema, old, err);
}

void schema_finish(struct schema *schema)
{
	ASSERT(!schema->finished);
	schema->finished = true;
}

size_t schema_count(const struct schema *schema)
{
	ASSERT(schema->finished);
	return table_count(schema);
}

const struct schema_tensor *schema_tensor(const struct schema *schema, size_t index)
{
	ASSERT(index < schema_count(schema));
	return &table(schema)[index];
}

uint64_t schema_tensor_units(const struct schema_tensor *tensor)
{
	const unsigned bits = dtype_bits(tensor->dtype);
	return bits < 8 ? tensor->bytes : tensor->bytes / (bits / 8);
}

struct schema *schema_of_tensors(
	const struct schema_tensor *tensors, size_t count, struct error *err)
{
	ASSERT(tensors != NULL || count == 0);
	struct schema *const schema = schema_new();
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++) {
		result = check_tensor(&tensors[i], err);
		if (result == 0)
			result = append(schema, &tensors[i], err);
	}
	if (result == 0)
		result = merge(schema, 0, err);
	schema_finish(schema);
	if (result == 0)
		return schema;
	schema_free(schema);
	return NULL;
}

ptrdiff_t schema_find(const struct schema *schema, struct span name)
{
	const size_t count = schema_count(schema);
	const struct schema_tensor wanted = {.name = name};
	const struct schema_tensor *const found = count > 0
		? bsearch(&wanted, table(schema), count, sizeof(wanted), schema_order_by_name)
		: NULL;
	return found != NULL ? found - table(schema) : -1;
}

uint64_t schema_bytes(const struct schema *schema)
{
	ASSERT(schema->finished);
	return schema->bytes;
}

void schema_print(const struct schema *schema, struct buffer *out)
{
	for (size_t i = 0; i < schema_count(schema); i++)
		print_tensor(schema_tensor(schema, i), out);
}

struct schema *schema_parse(struct span text, struct error *err)
{
	struct schema *const schema = schema_new();
	struct span rest = text;
	struct buffer shape;
	buffer_init(&shape, (text.len + 1) * sizeof(uint64_t));
	int result = 0;
	while (result == 0 && rest.len > 0)
		result = parse_tensor(schema, &rest, &shape, err);
	if (result == 0)
		result = merge(schema, 0, err);
	buffer_release(&shape);
	if (result == 0) {
		schema_finish(schema);
		return schema;
	}
	schema_free(schema);
	return NULL;
}

int schema_check(const struct schema *schema, const struct schema *other, struct error *err)
{
	const struct schema_tensor *missing = NULL;
	const size_t count = schema_count(schema);
	size_t at = 0;
	for (size_t i = 0; i < schema_count(other); i++) {
		const struct schema_tensor *const theirs = schema_tensor(other, i);
		for (; at < count && span_compare(table(schema)[at].name, theirs->name) < 0; at++)
			missing = missing != NULL ? missing : &table(schema)[at];
		if (at == count || !span_equal(table(schema)[at].name, theirs->name))
			return refuse(
				theirs->name, ERROR_SCHEMA_MISMATCH, "is not in the schema", err);
		if (!same_tensor(&table(schema)[at], theirs))
			return refuse_form(&table(schema)[at], theirs, err);
		at++;
	}
	if (missing == NULL && at < count)
		missing = &table(schema)[at];
	return missing == NULL ? 0
			       : refuse(missing->name, ERROR_INCOMPLETE_ANCHOR, "is missing", err);
}

struct digest128 schema_digest(const struct schema *schema)
{
	return digest_text(schema, NULL);
}

struct digest128 schema_checkpoint_digest(
	const struct schema *schema, const struct digest128 *digests)
{
	ASSERT(digests != NULL || schema_count(schema) == 0);
	static const struct digest128 none;
	return digest_text(schema, digests != NULL ? digests : &none);
}

static int check_tensor(const struct schema_tensor *tensor, struct error *err)
{
	char text[128];
	uint64_t bytes;
	ASSERT((unsigned)tensor->dtype < DTYPE_COUNT);
	ASSERT(tensor->shape != NULL || tensor->rank == 0);
	if (!span_is_utf8(tensor->name))
		return refuse(tensor->name, ERROR_INVALID, "has a name that is not UTF-8", err);
	if (span_equal_text(tensor->name, "__metadata__"))
		return refuse(tensor->name, ERROR_INVALID, "has the reserved name", err);
	if (!count_bytes(tensor, &bytes))
		return refuse(tensor->name, ERROR_INVALID,
			"has a shape that overflows or does not fill whole bytes", err);
	if (bytes == tensor->bytes)
		return 0;
	snprintf(text, sizeof(text), "has %" PRIu64 " bytes; its dtype and shape say %" PRIu64,
		tensor->bytes, bytes);
	return refuse(tensor->name, ERROR_INVALID, text, err);
}

static bool count_bytes(const struct schema_tensor *tensor, uint64_t *out_bytes)
{
	uint64_t elements = 1;
	uint64_t bits;
	bool overflow = false;
	for (unsigned i = 0; i < tensor->rank; i++)
		overflow =
			__builtin_mul_overflow(elements, tensor->shape[i], &elements) || overflow;
	overflow = __builtin_mul_overflow(elements, dtype_bits(tensor->dtype), &bits) || overflow;
	*out_bytes = bits / 8;
	return !overflow && bits % 8 == 0;
}

static size_t table_count(const struct schema *schema)
{
	return schema->tensors.len / sizeof(struct schema_tensor);
}

/* Copies one tensor to the end of the table. */
static int append(struct schema *schema, const struct schema_tensor *from, struct error *err)
{
	ASSERT(!schema->finished);
	if (span_find(from->name, 0) >= 0)
		return refuse(from->name, ERROR_INVALID, "has a zero byte in its name", err);
	struct schema_tensor tensor = *from;
	tensor.name = arena_copy(schema->arena, from->name);
	uint64_t *const shape =
		arena_take_array(schema->arena, from->rank > 0 ? from->rank : 1, sizeof(uint64_t));
	if (arena_overflowed(schema->arena) || shape == NULL)
		return error_set(err, ERROR_TOO_LARGE,
			"the schema needs more memory than it may have: it has too many tensors");
	if (from->rank > 0)
		memcpy(shape, from->shape, from->rank * sizeof(uint64_t));
	tensor.shape = shape;
	if (__builtin_add_overflow(schema->bytes, tensor.bytes, &schema->bytes))
		return refuse(
			from->name, ERROR_INVALID, "makes the schema larger than 2^64 bytes", err);
	buffer_add(&schema->tensors, &tensor, sizeof(tensor));
	return buffer_check(&schema->tensors, "the schema", err);
}

static int refuse(struct span name, enum error_kind kind, const char *what, struct error *err)
{
	const int shown = (int)(name.len < SHOWN_NAME_BYTES ? name.len : SHOWN_NAME_BYTES);
	return error_set(err, kind, "tensor '%.*s' %s", shown, name.data, what);
}

/* Sorts [old, count) and merges it with [0, old), which is sorted. Refuses a name that is there
 * twice. */
static int merge(struct schema *schema, size_t old, struct error *err)
{
	const size_t count = table_count(schema);
	ASSERT(old <= count);
	if (count == old)
		return 0;
	struct schema_tensor *const tensors = table(schema);
	qsort(tensors + old, count - old, sizeof(tensors[0]), schema_order_by_name);
	if (old > 0 && schema_order_by_name(&tensors[old - 1], &tensors[old]) > 0)
		qsort(tensors, count, sizeof(tensors[0]), schema_order_by_name);
	for (size_t i = 1; i < count; i++)
		if (span_equal(tensors[i - 1].name, tensors[i].name))
			return refuse(tensors[i].name, ERROR_INVALID, "is given twice", err);
	return 0;
}

static struct schema_tensor *table(const struct schema *schema)
{
	return (struct schema_tensor *)schema->tensors.data;
}

static int schema_order_by_name(const void *left, const void *right)
{
	return span_compare(((const struct schema_tensor *)left)->name,
		((const struct schema_tensor *)right)->name);
}

static void print_tensor(const struct schema_tensor *tensor, struct buffer *out)
{
	buffer_add_span(out, tensor->name);
	buffer_add_byte(out, 0);
	buffer_add_text(out, dtype_name(tensor->dtype));
	buffer_add_byte(out, 0);
	for (unsigned i = 0; i < tensor->rank; i++)
		buffer_format(out, i > 0 ? "x%llu" : "%llu", (unsigned long long)tensor->shape[i]);
	buffer_add_byte(out, 0);
}

static int parse_tensor(
	struct schema *schema, struct span *rest, struct buffer *shape, struct error *err)
{
	struct schema_tensor tensor = {0};
	struct span dtype;
	struct span dimensions;
	uint64_t elements;
	uint64_t bits;
	buffer_reset(shape);
	if (!take_field(rest, &tensor.name) || !take_field(rest, &dtype) ||
		!take_field(rest, &dimensions))
		return error_set(err, ERROR_INVALID, "the text of a schema ends within a tensor");
	if (!span_is_utf8(tensor.name) || !dtype_parse(dtype, &tensor.dtype) ||
		!parse_shape(dimensions, shape, &elements))
		return refuse(tensor.name, ERROR_INVALID,
			"has a malformed name, dtype or shape in the text of a schema", err);
	if (__builtin_mul_overflow(elements, dtype_bits(tensor.dtype), &bits) || bits % 8 != 0)
		return refuse(tensor.name, ERROR_INVALID,
			"has a size that overflows or does not fill whole bytes", err);
	tensor.bytes = bits / 8;
	tensor.rank = (unsigned)(shape->len / sizeof(uint64_t));
	tensor.shape = (const uint64_t *)shape->data;
	return append(schema, &tensor, err);
}

static bool take_field(struct span *rest, struct span *out_field)
{
	const ptrdiff_t end = span_find(*rest, 0);
	if (end < 0)
		return false;
	*out_field = span_slice(*rest, 0, (size_t)end);
	*rest = span_slice(*rest, (size_t)end + 1, rest->len);
	return true;
}

static bool parse_shape(struct span text, struct buffer *shape, uint64_t *out_elements)
{
	uint64_t elements = 1;
	if (text.len > 0 && text.data[text.len - 1] == 'x')
		return false;
	struct span piece;
	while (text.len > 0 && span_split(&text, 'x', &piece)) {
		uint64_t dimension;
		if (!span_parse_u64(piece, &dimension) || (piece.len > 1 && piece.data[0] == '0'))
			return false;
		if (__builtin_mul_overflow(elements, dimension, &elements))
			return false;
		buffer_add(shape, &dimension, sizeof(dimension));
	}
	*out_elements = elements;
	return !buffer_failed(shape);
}

static bool same_tensor(const struct schema_tensor *a, const struct schema_tensor *b)
{
	return a->dtype == b->dtype && a->rank == b->rank &&
		(a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof(a->shape[0])) == 0);
}

static int refuse_form(
	const struct schema_tensor *ours, const struct schema_tensor *theirs, struct error *err)
{
	char wanted[FORM_TEXT_BYTES];
	char found[FORM_TEXT_BYTES];
	char text[2 * FORM_TEXT_BYTES + 32];
	print_form(ours, wanted);
	print_form(theirs, found);
	snprintf(text, sizeof(text), "is %s, not %s", found, wanted);
	return refuse(ours->name, ERROR_SCHEMA_MISMATCH, text, err);
}

/* Prints "BF16 300x100", or only the first dimensions when there are many. */
static void print_form(const struct schema_tensor *tensor, char out[FORM_TEXT_BYTES])
{
	size_t len = (size_t)snprintf(out, FORM_TEXT_BYTES, "%s%s", dtype_name(tensor->dtype),
		tensor->rank == 0 ? " scalar" : "");
	for (unsigned i = 0; i < tensor->rank && len < FORM_TEXT_BYTES; i++)
		len += (size_t)snprintf(out + len, FORM_TEXT_BYTES - len, "%c%" PRIu64,
			i == 0 ? ' ' : 'x', tensor->shape[i]);
}

static struct digest128 digest_text(const struct schema *schema, const struct digest128 *digests)
{
	struct xxh3_stream *const stream = xxh3_stream_new();
	struct buffer text;
	buffer_init(&text, SCHEMA_CAP_BYTES);
	for (size_t i = 0; i < schema_count(schema); i++) {
		buffer_reset(&text);
		print_tensor(schema_tensor(schema, i), &text);
		if (digests != NULL)
			buffer_add(&text, digests[i].bytes, sizeof(digests[i].bytes));
		ASSERT(!buffer_failed(&text));
		xxh3_stream_add(stream, buffer_span(&text));
	}
	const struct digest128 digest = xxh3_stream_result(stream);
	buffer_release(&text);
	xxh3_stream_free(stream);
	return digest;
}
