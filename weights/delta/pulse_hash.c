/* Every tensor goes into one SHA-256 stream, one after the other: the order is a part of the hash,
 * so threads would not help. */
#include "weights/delta/pulse_hash.h"

#include <inttypes.h>
#include <string.h>

enum { SHAPE_TEXT_BYTES = 1024 };

/* The names of dtypes in torch. */
static const char *const torch_names[DTYPE_COUNT] = {
	[DTYPE_U64] = "uint64",
	[DTYPE_I64] = "int64",
	[DTYPE_F64] = "float64",
	[DTYPE_C64] = "complex64",
	[DTYPE_F32] = "float32",
	[DTYPE_U32] = "uint32",
	[DTYPE_I32] = "int32",
	[DTYPE_BF16] = "bfloat16",
	[DTYPE_F16] = "float16",
	[DTYPE_U16] = "uint16",
	[DTYPE_I16] = "int16",
	[DTYPE_F8_E5M2FNUZ] = "float8_e5m2fnuz",
	[DTYPE_F8_E4M3FNUZ] = "float8_e4m3fnuz",
	[DTYPE_F8_E8M0] = "float8_e8m0fnu",
	[DTYPE_F8_E4M3] = "float8_e4m3fn",
	[DTYPE_F8_E5M2] = "float8_e5m2",
	[DTYPE_I8] = "int8",
	[DTYPE_U8] = "uint8",
	[DTYPE_BOOL] = "bool",
};

static int add_all(struct sha256_stream *stream, struct tensor_source *tensors, struct error *err);
static int add_facts(
	struct sha256_stream *stream, const struct schema_tensor *tensor, struct error *err);
static void print_facts(const struct schema_tensor *tensor, struct buffer *out);
static int add_bytes(struct sha256_stream *stream, struct tensor_cursor *cursor, struct error *err);

int pulse_hash_find(struct tensor_source *tensors, uint8_t out[SHA256_BYTES], struct error *err)
{
	struct sha256_stream *const stream = sha256_stream_new();
	const int result = add_all(stream, tensors, err);
	sha256_stream_result(stream, out);
	sha256_stream_free(stream);
	return result;
}

int pulse_hash_check(
	struct tensor_source *tensors, const uint8_t hash[SHA256_BYTES], struct error *err)
{
	uint8_t found[SHA256_BYTES];
	if (pulse_hash_find(tensors, found, err) != 0)
		return -1;
	return memcmp(found, hash, SHA256_BYTES) == 0
		? 0
		: error_set(err, ERROR_DIGEST_MISMATCH,
			  "the weights do not have the weights_hash of the delta's metadata.json:"
			  " its base was another one, or its maker lost a change");
}

static int add_all(struct sha256_stream *stream, struct tensor_source *tensors, struct error *err)
{
	struct tensor_cursor *cursor = NULL;
	int result = 0;
	for (size_t i = 0; i < schema_count(tensors->schema) && result == 0; i++) {
		result = add_facts(stream, schema_tensor(tensors->schema, i), err);
		if (result == 0)
			result = tensor_source_move(tensors, &cursor, i, 0, err);
		if (result == 0)
			result = add_bytes(stream, cursor, err);
	}
	tensor_cursor_close(cursor);
	return result;
}

static int add_facts(
	struct sha256_stream *stream, const struct schema_tensor *tensor, struct error *err)
{
	struct buffer text;
	if (torch_names[tensor->dtype] == NULL)
		return error_set(err, ERROR_UNSUPPORTED,
			"the dtype %s has no name in a weights_hash", dtype_name(tensor->dtype));
	buffer_init(&text, SHAPE_TEXT_BYTES);
	print_facts(tensor, &text);
	const int result = buffer_check(&text, "the text of a shape", err);
	sha256_stream_add(stream, tensor->name);
	sha256_stream_add(stream, buffer_span(&text));
	buffer_release(&text);
	return result;
}

/* Prints "torch.bfloat16(2, 3)", or "torch.bfloat16(5,)" for one dimension. */
static void print_facts(const struct schema_tensor *tensor, struct buffer *out)
{
	buffer_format(out, "torch.%s(", torch_names[tensor->dtype]);
	for (unsigned i = 0; i < tensor->rank; i++)
		buffer_format(out, "%s%" PRIu64, i > 0 ? ", " : "", tensor->shape[i]);
	buffer_add_text(out, tensor->rank == 1 ? ",)" : ")");
}

static int add_bytes(struct sha256_stream *stream, struct tensor_cursor *cursor, struct error *err)
{
	struct span block;
	int got;
	while ((got = tensor_cursor_next(cursor, &block, err)) == 1)
		sha256_stream_add(stream, block);
	return got;
}
