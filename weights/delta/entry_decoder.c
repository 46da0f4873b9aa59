/* A table has the functions of each kind of entry. Kinds whose blocks stand for themselves get a
 * map, so decoding may begin at any block. The others are one zstd frame and must be decoded from
 * the front. A block of the result that does not change is given out as the base's bytes. */
#include "weights/delta/entry_decoder.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"

static int map_blocks(struct entry_map *map, const struct delta_entry *entry,
	const struct schema_tensor *tensor, struct error *err);
static void make_room(struct entry_decoder *decoder);
static uint64_t result_bytes(const struct schema_tensor *tensor, uint64_t block);
static int entry_whole_next(
	struct entry_decoder *decoder, struct span base, struct span *out, struct error *err);
static int entry_blocks_next(
	struct entry_decoder *decoder, struct span base, struct span *out, struct error *err);

static const struct {
	int (*begin)(struct entry_decoder *decoder, struct error *err); /* NULL: nothing to do */
	int (*next)(struct entry_decoder *decoder, struct span base, struct span *out,
		struct error *err);
} kinds[] = {
	[DELTA_ENTRY_SPARSE] = {entry_sparse_begin, entry_sparse_next},
	[DELTA_ENTRY_WHOLE] = {NULL, entry_whole_next},
	[DELTA_ENTRY_BLOCKS] = {NULL, entry_blocks_next},
	[DELTA_ENTRY_XOR] = {entry_frame_begin, entry_xor_next},
	[DELTA_ENTRY_OVERWRITE] = {entry_frame_begin, entry_overwrite_next},
};

int entry_map_make(struct entry_map *map, const struct delta_entry *entry,
	const struct schema_tensor *tensor, struct error *err)
{
	*map = (struct entry_map){0};
	if (entry->kind == DELTA_ENTRY_BLOCKS)
		return map_blocks(map, entry, tensor, err);
	return entry->kind == DELTA_ENTRY_SPARSE ? entry_sparse_map(map, entry, tensor, err) : 0;
}

void entry_map_release(struct entry_map *map)
{
	free(map->offsets);
	free(map->starts);
	free(map->values);
	*map = (struct entry_map){0};
}

bool entry_map_splits(const struct entry_map *map, const struct delta_entry *entry)
{
	return entry->kind == DELTA_ENTRY_WHOLE || map->offsets != NULL || map->starts != NULL;
}

struct entry_decoder *entry_decoder_new(void)
{
	return memory_new(sizeof(struct entry_decoder));
}

void entry_decoder_free(struct entry_decoder *decoder)
{
	if (decoder == NULL)
		return;
	free(decoder->into);
	if (decoder->code != NULL)
		block_code_context_free(decoder->code);
	free(decoder->positions);
	zstd_reader_free(decoder->frame);
	zstd_reader_free(decoder->frame_values);
	for (unsigned i = 0; i < DELTA_CHECKSUMS; i++)
		tensor_checksum_free(decoder->checksums[i]);
	free(decoder->run_positions);
	free(decoder->run_values);
	free(decoder);
}

bool entry_decoder_needs_base(const struct entry_decoder *decoder)
{
	return decoder->entry->kind != DELTA_ENTRY_WHOLE;
}

int entry_decoder_begin(struct entry_decoder *decoder, const struct delta_entry *entry,
	const struct schema_tensor *tensor, const struct entry_map *map, uint64_t block,
	struct error *err)
{
	const enum delta_checksum kind = decoder->checksum_kind;
	ASSERT(block == 0 || entry_map_splits(map, entry));
	ASSERT((unsigned)kind < DELTA_CHECKSUMS);
	decoder->entry = entry;
	decoder->tensor = tensor;
	decoder->map = map;
	decoder->block_bytes = block_code_bytes(tensor->dtype);
	decoder->block = block;
	if (entry_decoder_needs_base(decoder))
		make_room(decoder);
	if (decoder->checksums[kind] == NULL)
		decoder->checksums[kind] = tensor_checksum_new(kind);
	decoder->checksum = decoder->checksums[kind];
	return kinds[entry->kind].begin != NULL ? kinds[entry->kind].begin(decoder, err) : 0;
}

int entry_decoder_next(
	struct entry_decoder *decoder, struct span base, struct span *out, struct error *err)
{
	ASSERT(base.len <= decoder->block_bytes);
	ASSERT(base.len <= decoder->into_bytes || !entry_decoder_needs_base(decoder));
	if (kinds[decoder->entry->kind].next(decoder, base, out, err) != 0)
		return -1;
	decoder->block++;
	return 0;
}

static int map_blocks(struct entry_map *map, const struct delta_entry *entry,
	const struct schema_tensor *tensor, struct error *err)
{
	const uint64_t block_bytes = block_code_bytes(tensor->dtype);
	const uint64_t count = tensor->bytes / block_bytes + (tensor->bytes % block_bytes != 0);
	map->offsets = memory_new_array((size_t)count + 1, sizeof(map->offsets[0]));
	uint64_t at = 0;
	for (uint64_t i = 0; i < count; i++) {
		struct block_code_facts facts;
		const struct span rest = span_slice(entry->data, (size_t)at, entry->data.len);
		if (block_code_parse(rest, tensor->dtype, result_bytes(tensor, i), &facts, err) !=
			0)
			return error_wrap(err, "block %" PRIu64, i);
		const uint64_t size = facts.header_bytes + facts.payload_bytes;
		if (size > rest.len)
			return error_set(err, ERROR_INVALID, "block %" PRIu64 " is cut off", i);
		map->offsets[i] = at;
		at += size;
	}
	map->offsets[count] = at;
	if (at != entry->data.len)
		return error_set(err, ERROR_INVALID, "its blocks have %" PRIu64 " bytes, not %zu",
			at, entry->data.len);
	return 0;
}

/* Zeroing a block of the widest dtype would cost a small tensor more than decoding it. */
static void make_room(struct entry_decoder *decoder)
{
	const uint64_t block = decoder->block_bytes;
	const uint64_t tensor = decoder->tensor->bytes;
	const size_t most = (size_t)(tensor < block ? tensor : block);
	if (decoder->into != NULL && decoder->into_bytes >= most)
		return;
	free(decoder->into);
	decoder->into = memory_new(most);
	decoder->into_bytes = most;
}

static uint64_t result_bytes(const struct schema_tensor *tensor, uint64_t block)
{
	const uint64_t block_bytes = block_code_bytes(tensor->dtype);
	const uint64_t at = block * block_bytes;
	return tensor->bytes - at < block_bytes ? tensor->bytes - at : block_bytes;
}

static int entry_whole_next(
	struct entry_decoder *decoder, struct span base, struct span *out, struct error *err)
{
	(void)base;
	(void)err;
	*out = span_slice(decoder->entry->values, (size_t)(decoder->block * decoder->block_bytes),
		(size_t)decoder->block_bytes);
	return 0;
}

static int entry_blocks_next(
	struct entry_decoder *decoder, struct span base, struct span *out, struct error *err)
{
	const uint64_t *const offsets = decoder->map->offsets + decoder->block;
	const struct span block = span_slice(
		decoder->entry->data, (size_t)offsets[0], (size_t)(offsets[1] - offsets[0]));
	const enum dtype dtype = decoder->tensor->dtype;
	struct block_code_facts facts;
	if (block_code_parse(block, dtype, base.len, &facts, err) != 0)
		return error_wrap(err, "block %" PRIu64, decoder->block);
	/* A block that does not change is not copied, but it must be proven. */
	if (facts.changed == 0 && xxh3_64(base) == facts.result_hash) {
		*out = base;
		return 0;
	}
	if (decoder->code == NULL)
		decoder->code = block_code_context_new();
	if (block_code_decode(decoder->code, dtype, block, base, decoder->into, err) != 0)
		return error_wrap(err, "block %" PRIu64, decoder->block);
	*out = span_of(decoder->into, base.len);
	return 0;
}
