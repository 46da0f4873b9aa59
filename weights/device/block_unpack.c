/* A table has a way for each mode: how many bytes it takes on the device, and how they are made. */
#include "weights/device/block_unpack.h"

#include "weights/codec/block_context.h"
#include "weights/codec/gap_code.h"

_Static_assert(sizeof(struct device_block) == 112, "the layout is the device's too");
_Static_assert((int)DEVICE_CLASSES == (int)ULP_CLASSES_MAX, "the device counts all classes");

/* One block being unpacked. */
struct unpacking {
	const struct block_header *header;
	struct word_code code;
	struct span payload;
	uint64_t bytes; /* of the result */
	uint8_t *upload;
};

typedef uint64_t size_fn(const struct block_header *header, uint64_t bytes, size_t width);
typedef int fill_fn(const struct unpacking *unpacking, struct error *err);

static struct device_block describe(
	const struct block_header *header, const struct block_unpack_input *input);
static size_fn size_nothing, size_payload, size_result, size_pairs;
static fill_fn fill_nothing, fill_payload, fill_planes, fill_pairs;

static const struct {
	enum device_kind kind;
	bool is_decoded;
	size_fn *size;
	fill_fn *fill;
} ways[BLOCK_MODE_COUNT] = {
	[BLOCK_MODE_UNCHANGED] = {DEVICE_KEEP, false, size_nothing, fill_nothing},
	[BLOCK_MODE_RAW] = {DEVICE_SWAP, false, size_result, fill_payload},
	[BLOCK_MODE_PLANES] = {DEVICE_SWAP, true, size_result, fill_planes},
	[BLOCK_MODE_XOR] = {DEVICE_XOR, true, size_result, fill_planes},
	[BLOCK_MODE_WORDS] = {DEVICE_PAIRS, true, size_pairs, fill_pairs},
	[BLOCK_MODE_ULP] = {DEVICE_STEPS, false, size_payload, fill_payload},
};

static uint64_t aligned(uint64_t bytes)
{
	return (bytes + DEVICE_ALIGN - 1) / DEVICE_ALIGN * DEVICE_ALIGN;
}

/* Zeroes what follows the first `bytes` up to the next multiple. */
static void pad(uint8_t *upload, uint64_t bytes)
{
	memset(upload + bytes, 0, aligned(bytes) - bytes);
}

int block_unpack_measure(struct span bytes, enum dtype dtype, uint64_t result_bytes,
	struct block_unpack_size *out_size, struct error *err)
{
	struct block_header header;
	struct span rest = bytes;
	ASSERT(result_bytes > 0 && result_bytes <= block_code_bytes(dtype));
	ASSERT(result_bytes % block_word_bytes(dtype) == 0);
	if (block_header_read(&rest, dtype, result_bytes, &header, err) != 0)
		return -1;
	if (header.payload_bytes > rest.len)
		return error_set(err, ERROR_INVALID,
			"a block has a payload of %zu bytes; its header says %u", rest.len,
			header.payload_bytes);
	*out_size = (struct block_unpack_size){
		.block_bytes = bytes.len - rest.len + header.payload_bytes,
		.upload_bytes = aligned(
			ways[header.mode].size(&header, result_bytes, block_word_bytes(dtype))),
		.list_changes = header.mode == BLOCK_MODE_ULP
			? (uint32_t)ulp_table_count(&header.table)
			: 0,
		.is_decoded = ways[header.mode].is_decoded};
	return 0;
}

int block_unpack(struct block_code_context *context, const struct block_unpack_input *input,
	struct device_block *out_block, struct error *err)
{
	const size_t words = input->result_bytes / block_word_bytes(input->dtype);
	struct block_header header;
	struct span rest = input->block;
	if (block_header_read(&rest, input->dtype, input->result_bytes, &header, err) != 0)
		return -1;
	ASSERT(rest.len == header.payload_bytes);
	*out_block = describe(&header, input);
	block_context_need(context, words, input->result_bytes);
	const struct unpacking unpacking = {.header = &header,
		.code = block_context_words(context, input->dtype),
		.payload = rest,
		.bytes = input->result_bytes,
		.upload = input->upload};
	return ways[header.mode].fill(&unpacking, err);
}

static struct device_block describe(
	const struct block_header *header, const struct block_unpack_input *input)
{
	const struct ulp_table *const table = &header->table;
	const struct ulp_format format = ulp_format_of(input->dtype);
	const size_t width = block_word_bytes(input->dtype);
	struct device_block block = {
		.result_hash = header->result_hash,
		.payload_bytes = header->payload_bytes,
		.elements = (uint32_t)(input->result_bytes / width),
		.changes = header->mode == BLOCK_MODE_ULP ? (uint32_t)ulp_table_count(table)
							  : header->changed,
		.classes = table->classes,
		.top = table->top,
		.shift = format.shift,
		.mask = format.mask,
		.kind = (uint8_t)ways[header->mode].kind,
		.width = (uint8_t)width,
	};
	memcpy(block.counts, table->counts, sizeof(block.counts));
	memcpy(block.parameters, table->parameters, sizeof(block.parameters));
	return block;
}

static uint64_t size_nothing(const struct block_header *header, uint64_t bytes, size_t width)
{
	(void)header;
	(void)bytes;
	(void)width;
	return 0;
}

static uint64_t size_payload(const struct block_header *header, uint64_t bytes, size_t width)
{
	(void)bytes;
	(void)width;
	return header->payload_bytes;
}

static uint64_t size_result(const struct block_header *header, uint64_t bytes, size_t width)
{
	(void)header;
	(void)width;
	return bytes;
}

static uint64_t size_pairs(const struct block_header *header, uint64_t bytes, size_t width)
{
	(void)bytes;
	return aligned(sizeof(uint32_t) * (uint64_t)header->changed) +
		width * (uint64_t)header->changed;
}

static int fill_nothing(const struct unpacking *unpacking, struct error *err)
{
	(void)unpacking;
	(void)err;
	return 0;
}

static int fill_payload(const struct unpacking *unpacking, struct error *err)
{
	(void)err;
	memcpy(unpacking->upload, unpacking->payload.data, unpacking->payload.len);
	pad(unpacking->upload, unpacking->payload.len);
	return 0;
}

static int fill_planes(const struct unpacking *unpacking, struct error *err)
{
	pad(unpacking->upload, unpacking->bytes);
	return plane_code_decode(&unpacking->code.planes, unpacking->payload, unpacking->upload,
		unpacking->bytes, err);
}

static int fill_pairs(const struct unpacking *unpacking, struct error *err)
{
	const size_t positions = sizeof(uint32_t) * (size_t)unpacking->header->changed;
	const struct word_code_changes changes = {
		.count = unpacking->header->changed, .parameter = unpacking->header->parameter};
	if (word_code_read(&unpacking->code, &changes, unpacking->payload, unpacking->bytes, err) !=
		0)
		return -1;
	uint8_t *const words = unpacking->upload + aligned(positions);
	const size_t word_bytes = unpacking->code.planes.width * changes.count;
	memcpy(unpacking->upload, unpacking->code.gaps, positions);
	memcpy(words, unpacking->code.words, word_bytes);
	pad(unpacking->upload, positions);
	pad(words, word_bytes);
	return 0;
}
