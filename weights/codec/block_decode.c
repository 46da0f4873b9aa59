/* A table has one decoder for each mode. All of them check their payload, because a block may come
 * from anywhere. ulps are decoded and hashed piece by piece, while a piece is in the cache; the
 * other modes are hashed whole at the end. */
#include "weights/codec/block_context.h"

#include "weights/codec/gap_code.h"

/* One block being decoded. */
struct decoding {
	struct block_code_context *context;
	enum dtype dtype;
	struct block_header header;
	struct span payload;
	struct span base;
	uint8_t *into;
	bool is_hashed;
};

static int decode(struct decoding *decoding, struct span block, struct error *err);
static int decode_unchanged(const struct decoding *decoding, struct error *err);
static int decode_raw(const struct decoding *decoding, struct error *err);
static int decode_planes(const struct decoding *decoding, struct error *err);
static int decode_xor(const struct decoding *decoding, struct error *err);
static int decode_words(const struct decoding *decoding, struct error *err);
static int decode_ulps(const struct decoding *decoding, struct error *err);
static void hash_piece(const struct decoding *decoding, size_t from, size_t to);

int block_code_parse(struct span bytes, enum dtype dtype, uint64_t expected_bytes,
	struct block_code_facts *out_facts, struct error *err)
{
	struct block_header header;
	struct span rest = bytes;
	if (expected_bytes > block_code_bytes(dtype) ||
		expected_bytes % block_word_bytes(dtype) != 0)
		return error_set(err, ERROR_INVALID, "a block of %s cannot have %llu bytes",
			dtype_name(dtype), (unsigned long long)expected_bytes);
	if (block_header_read(&rest, dtype, expected_bytes, &header, err) != 0)
		return -1;
	const uint64_t words = expected_bytes / block_word_bytes(dtype);
	const uint64_t counts[BLOCK_MODE_COUNT] = {
		[BLOCK_MODE_RAW] = words,
		[BLOCK_MODE_PLANES] = words,
		[BLOCK_MODE_XOR] = words,
		[BLOCK_MODE_WORDS] = header.changed,
		[BLOCK_MODE_ULP] =
			header.mode == BLOCK_MODE_ULP ? ulp_table_count(&header.table) : 0,
	};
	*out_facts = (struct block_code_facts){.mode = (uint8_t)header.mode,
		.result_bytes = expected_bytes,
		.changed = counts[header.mode],
		.header_bytes = bytes.len - rest.len,
		.payload_bytes = header.payload_bytes,
		.result_hash = header.result_hash};
	return 0;
}

int block_code_decode(struct block_code_context *context, enum dtype dtype, struct span block,
	struct span base, uint8_t *into, struct error *err)
{
	struct decoding decoding = {
		.context = context, .dtype = dtype, .base = base, .into = into, .is_hashed = true};
	if (decode(&decoding, block, err) != 0)
		return -1;
	if (block_context_hash_end(context) != decoding.header.result_hash)
		return error_set(err, ERROR_DIGEST_MISMATCH,
			"the result of a block has another hash than its header says");
	return 0;
}

int block_code_decode_unproven(struct block_code_context *context, enum dtype dtype,
	struct span block, struct span base, uint8_t *into, struct error *err)
{
	struct decoding decoding = {.context = context, .dtype = dtype, .base = base, .into = into};
	return decode(&decoding, block, err);
}

static int decode(struct decoding *decoding, struct span block, struct error *err)
{
	static int (*const decoders[BLOCK_MODE_COUNT])(
		const struct decoding *decoding, struct error *err) = {
		[BLOCK_MODE_UNCHANGED] = decode_unchanged,
		[BLOCK_MODE_RAW] = decode_raw,
		[BLOCK_MODE_PLANES] = decode_planes,
		[BLOCK_MODE_XOR] = decode_xor,
		[BLOCK_MODE_WORDS] = decode_words,
		[BLOCK_MODE_ULP] = decode_ulps,
	};
	const size_t len = decoding->base.len;
	decoding->payload = block;
	ASSERT(len <= block_code_bytes(decoding->dtype));
	ASSERT(len % block_word_bytes(decoding->dtype) == 0);
	if (block_header_read(&decoding->payload, decoding->dtype, len, &decoding->header, err) !=
		0)
		return -1;
	if (decoding->payload.len != decoding->header.payload_bytes)
		return error_set(err, ERROR_INVALID,
			"a block has a payload of %zu bytes; its header says %u",
			decoding->payload.len, decoding->header.payload_bytes);
	block_context_need(decoding->context, len / block_word_bytes(decoding->dtype), len);
	block_context_hash_start(decoding->context);
	if (decoders[decoding->header.mode](decoding, err) != 0)
		return -1;
	if (decoding->header.mode != BLOCK_MODE_ULP)
		hash_piece(decoding, 0, len);
	return 0;
}

static int decode_unchanged(const struct decoding *decoding, struct error *err)
{
	(void)err;
	if (decoding->into != decoding->base.data && decoding->base.len != 0)
		memcpy(decoding->into, decoding->base.data, decoding->base.len);
	return 0;
}

static int decode_raw(const struct decoding *decoding, struct error *err)
{
	(void)err;
	memcpy(decoding->into, decoding->payload.data, decoding->payload.len);
	return 0;
}

static int decode_planes(const struct decoding *decoding, struct error *err)
{
	const struct word_code code = block_context_words(decoding->context, decoding->dtype);
	return plane_code_decode(
		&code.planes, decoding->payload, decoding->into, decoding->base.len, err);
}

static int decode_xor(const struct decoding *decoding, struct error *err)
{
	const struct word_code code = block_context_words(decoding->context, decoding->dtype);
	if (plane_code_decode(
		    &code.planes, decoding->payload, code.words, decoding->base.len, err) != 0)
		return -1;
	for (size_t i = 0; i < decoding->base.len; i++)
		decoding->into[i] = decoding->base.data[i] ^ code.words[i];
	return 0;
}

static int decode_words(const struct decoding *decoding, struct error *err)
{
	const struct word_code code = block_context_words(decoding->context, decoding->dtype);
	const struct word_code_changes changes = {
		.count = decoding->header.changed, .parameter = decoding->header.parameter};
	return word_code_decode(
		&code, &changes, decoding->payload, decoding->base, decoding->into, err);
}

static int decode_ulps(const struct decoding *decoding, struct error *err)
{
	struct block_code_context *const context = decoding->context;
	const struct ulp_table *const table = &decoding->header.table;
	const struct ulp_view view = {.base = decoding->base.data,
		.format = ulp_format_of(decoding->dtype),
		.top = table->top,
		.classes = table->classes};
	const size_t elements = decoding->base.len / view.format.width;
	const struct ulp_lists lists = {.ranks = context->keys, .steps = context->steps};
	struct ulp_patch patch;
	if (ulp_stream_read(table, decoding->payload, (uint32_t)elements, &lists, &patch, err) != 0)
		return -1;
	for (size_t from = 0; from < elements; from += BLOCK_CONTEXT_PIECE) {
		const size_t to = elements - from < BLOCK_CONTEXT_PIECE
			? elements
			: from + BLOCK_CONTEXT_PIECE;
		context->way->patch(&view, from, to, &patch, decoding->into);
		hash_piece(decoding, from * view.format.width, to * view.format.width);
	}
	return 0;
}

static void hash_piece(const struct decoding *decoding, size_t from, size_t to)
{
	if (decoding->is_hashed)
		block_context_hash_add(decoding->context,
			span_slice(decoding->base, from, to - from),
			span_of(decoding->into + from, to - from));
}
