/* Positions and values, as TRL writes them. Positions come in runs of 65536 elements. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "weights/entry_decoder.h"

enum { RUN_ELEMENTS = 65536, ELEMENT_BYTES = 2, MAPPED_LEAST_BLOCKS = 64 };

static uint64_t blocks_of(const struct schema_tensor *const tensor)
{
	const uint64_t block_bytes = block_code_bytes(tensor->dtype);
	return tensor->bytes / block_bytes + (tensor->bytes % block_bytes != 0);
}

/* Passes over one block's positions. */
static int pass_block(struct index_decoder *const index, const uint64_t elements, const uint64_t block, uint16_t *const positions,
	uint64_t *const taken, struct error *const err)
{
	const uint64_t start = block * BLOCK_CODE_ELEMENTS;
	for (uint64_t at = start; at < elements && at < start + BLOCK_CODE_ELEMENTS; at += RUN_ELEMENTS) {
		size_t count = 0;
		const uint64_t run = elements - at < RUN_ELEMENTS ? elements - at : RUN_ELEMENTS;
		if (index_decoder_take(index, at, (size_t)run, positions, &count, err) != 0)
			return -1;
		*taken += count;
	}
	return 0;
}

/* Only where one thread would be left with a large tensor: finding the starts is half of the work of decoding. */
int entry_sparse_map(struct entry_map *const map, const struct delta_entry *const entry, const struct schema_tensor *const tensor,
	struct error *const err)
{
	const uint64_t blocks = blocks_of(tensor);
	const uint64_t elements = tensor->bytes / ELEMENT_BYTES;
	if (blocks < MAPPED_LEAST_BLOCKS)
		return 0;
	map->starts = memory_new_array((size_t)blocks, sizeof(map->starts[0]));
	map->values = memory_new_array((size_t)blocks, sizeof(map->values[0]));
	uint16_t *const positions = memory_new_array(RUN_ELEMENTS, sizeof(positions[0]));
	struct index_decoder index;
	uint64_t taken = 0;
	int result = 0;
	index_decoder_init(&index, entry->form, entry->index, elements);
	for (uint64_t block = 0; block < blocks && result == 0; block++) {
		map->starts[block] = index;
		map->values[block] = taken;
		result = pass_block(&index, elements, block, positions, &taken, err);
	}
	free(positions);
	return result;
}

int entry_sparse_begin(struct entry_decoder *const decoder, struct error *const err)
{
	(void)err;
	if (decoder->positions == NULL)
		decoder->positions = memory_new_array(RUN_ELEMENTS, sizeof(decoder->positions[0]));
	decoder->taken = 0;
	index_decoder_init(&decoder->index, decoder->entry->form, decoder->entry->index, decoder->tensor->bytes / ELEMENT_BYTES);
	if (decoder->block > 0) {
		decoder->index = decoder->map->starts[decoder->block];
		decoder->taken = decoder->map->values[decoder->block];
	}
	return 0;
}

static int take_run(struct entry_decoder *const decoder, const uint64_t start, const struct span base, uint8_t *const into,
	bool *const changed, struct error *const err)
{
	size_t count = 0;
	if (index_decoder_take(&decoder->index, start, base.len / ELEMENT_BYTES, decoder->positions, &count, err) != 0)
		return -1;
	memcpy(into, base.data, base.len);
	const uint8_t *const values = decoder->entry->values.data + ELEMENT_BYTES * decoder->taken;
	for (size_t i = 0; i < count; i++)
		memcpy(into + ELEMENT_BYTES * (size_t)decoder->positions[i], values + ELEMENT_BYTES * i, ELEMENT_BYTES);
	decoder->taken += count;
	*changed = *changed || count > 0;
	return 0;
}

int entry_sparse_next(struct entry_decoder *const decoder, const struct span base, struct span *const out, struct error *const err)
{
	const uint64_t start = decoder->block * BLOCK_CODE_ELEMENTS;
	bool changed = false;
	for (size_t at = 0; at < base.len; at += RUN_ELEMENTS * ELEMENT_BYTES) {
		const struct span run = span_slice(base, at, RUN_ELEMENTS * ELEMENT_BYTES);
		if (take_run(decoder, start + at / ELEMENT_BYTES, run, decoder->into + at, &changed, err) != 0)
			return -1;
	}
	*out = changed ? span_of(decoder->into, base.len) : base;
	return 0;
}
