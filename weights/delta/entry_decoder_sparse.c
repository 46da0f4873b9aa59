/* Positions and values, as TRL and PULSE write them. Positions are decoded in runs of 65536
 * elements. Positions are gaps or steps, so a start in the middle needs the state of the decoder
 * there. Only large tensors get a map of these states, because to find them is half of the work of
 * decoding. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "weights/delta/entry_decoder.h"

enum { RUN_ELEMENTS = 65536, MAPPED_LEAST_BLOCKS = 64 };

static uint64_t blocks_of(const struct schema_tensor *tensor);
static size_t element_bytes(const struct schema_tensor *tensor);
static int pass_block(struct index_decoder *index, uint64_t elements, uint64_t block,
	uint16_t *positions, uint64_t *taken, struct error *err);
static int take_run(struct entry_decoder *decoder, uint64_t start, struct span base, uint8_t *into,
	bool *changed, struct error *err);
static void place16(uint8_t *into, const uint16_t *positions, const uint8_t *values, size_t count);
static void place32(uint8_t *into, const uint16_t *positions, const uint8_t *values, size_t count);

int entry_sparse_map(struct entry_map *map, const struct delta_entry *entry,
	const struct schema_tensor *tensor, struct error *err)
{
	const uint64_t blocks = blocks_of(tensor);
	const uint64_t elements = tensor->bytes / element_bytes(tensor);
	if (blocks < MAPPED_LEAST_BLOCKS)
		return 0;
	map->starts = memory_new_array((size_t)blocks, sizeof(map->starts[0]));
	map->values = memory_new_array((size_t)blocks, sizeof(map->values[0]));
	uint16_t *const positions = memory_new_array(RUN_ELEMENTS, sizeof(positions[0]));
	struct index_decoder index;
	uint64_t taken = 0;
	int result = 0;
	index_decoder_init(&index, &entry->code, entry->index, elements);
	for (uint64_t block = 0; block < blocks && result == 0; block++) {
		map->starts[block] = index;
		map->values[block] = taken;
		result = pass_block(&index, elements, block, positions, &taken, err);
	}
	free(positions);
	return result;
}

int entry_sparse_begin(struct entry_decoder *decoder, struct error *err)
{
	(void)err;
	if (decoder->positions == NULL)
		decoder->positions = memory_new_array(RUN_ELEMENTS, sizeof(decoder->positions[0]));
	decoder->taken = 0;
	index_decoder_init(&decoder->index, &decoder->entry->code, decoder->entry->index,
		decoder->tensor->bytes / element_bytes(decoder->tensor));
	if (decoder->block > 0) {
		decoder->index = decoder->map->starts[decoder->block];
		decoder->taken = decoder->map->values[decoder->block];
	}
	return 0;
}

int entry_sparse_next(
	struct entry_decoder *decoder, struct span base, struct span *out, struct error *err)
{
	const uint64_t start = decoder->block * BLOCK_CODE_ELEMENTS;
	bool changed = false;
	const size_t bytes = element_bytes(decoder->tensor);
	for (size_t at = 0; at < base.len; at += RUN_ELEMENTS * bytes) {
		const struct span run = span_slice(base, at, RUN_ELEMENTS * bytes);
		if (take_run(decoder, start + at / bytes, run, decoder->into + at, &changed, err) !=
			0)
			return -1;
	}
	*out = changed ? span_of(decoder->into, base.len) : base;
	return 0;
}

static uint64_t blocks_of(const struct schema_tensor *tensor)
{
	const uint64_t block_bytes = block_code_bytes(tensor->dtype);
	return tensor->bytes / block_bytes + (tensor->bytes % block_bytes != 0);
}

static size_t element_bytes(const struct schema_tensor *tensor)
{
	ASSERT(dtype_bits(tensor->dtype) >= 8);
	return dtype_bits(tensor->dtype) / 8;
}

/* Passes over the positions of one block and counts them. */
static int pass_block(struct index_decoder *index, uint64_t elements, uint64_t block,
	uint16_t *positions, uint64_t *taken, struct error *err)
{
	const uint64_t start = block * BLOCK_CODE_ELEMENTS;
	for (uint64_t at = start; at < elements && at < start + BLOCK_CODE_ELEMENTS;
		at += RUN_ELEMENTS) {
		size_t count = 0;
		const uint64_t run = elements - at < RUN_ELEMENTS ? elements - at : RUN_ELEMENTS;
		if (index_decoder_take(index, at, (size_t)run, positions, &count, err) != 0)
			return -1;
		*taken += count;
	}
	return 0;
}

static int take_run(struct entry_decoder *decoder, uint64_t start, struct span base, uint8_t *into,
	bool *changed, struct error *err)
{
	size_t count = 0;
	const size_t bytes = element_bytes(decoder->tensor);
	if (index_decoder_take(
		    &decoder->index, start, base.len / bytes, decoder->positions, &count, err) != 0)
		return -1;
	ASSERT((decoder->taken + count) * bytes <= decoder->entry->values.len);
	memcpy(into, base.data, base.len);
	const uint8_t *const values = decoder->entry->values.data + bytes * decoder->taken;
	if (bytes == sizeof(uint16_t))
		place16(into, decoder->positions, values, count);
	else
		place32(into, decoder->positions, values, count);
	decoder->taken += count;
	*changed = *changed || count > 0;
	return 0;
}

/* One function for each width, so that a copy is one instruction. */
static void place16(uint8_t *into, const uint16_t *positions, const uint8_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		memcpy(into + 2 * (size_t)positions[i], values + 2 * i, 2);
}

static void place32(uint8_t *into, const uint16_t *positions, const uint8_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		memcpy(into + 4 * (size_t)positions[i], values + 4 * i, 4);
}
