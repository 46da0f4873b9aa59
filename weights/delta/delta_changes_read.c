/* What a delta says about the elements of one tensor. With a base the tensor is decoded and
 * compared block by block. An XOR frame over a base of zeros shows its changes the same way.
 * Positions are gathered run by run. */
#include <stdlib.h>

#include "base/memory.h"
#include "weights/delta/delta_changes.h"
#include "weights/delta/entry_decoder.h"
#include "weights/model/zero_source.h"

enum { SHOWN_NAME_BYTES = 120, PIECE_POSITIONS = 16384, POSITION_BYTES = 4 };

/* One tensor that is being read. */
struct reading {
	struct delta_changes *changes;
	const struct delta_reader *reader;
	const struct delta_entry *entry;
	const struct schema_tensor *facts;
	size_t tensor;
};
/* The positions of the run that is being gathered. */
struct gathered {
	uint64_t run;
	size_t count;
	uint16_t *positions;
};

static int read_entry(const struct reading *reading, struct tensor_source *base, struct error *err);
static int walk(
	const struct reading *reading, struct tensor_source *base, bool proves, struct error *err);
static int walk_blocks(const struct reading *reading, struct entry_decoder *decoder,
	struct tensor_cursor *base, uint64_t blocks, struct error *err);
static int read_alone(const struct reading *reading, struct error *err);
static int read_xor(const struct reading *reading, struct error *err);
static int read_sparse(const struct reading *reading, struct error *err);
static int read_overwrite(const struct reading *reading, struct error *err);
static int gather_frame(const struct reading *reading, struct zstd_reader *frame,
	struct gathered *gathered, struct error *err);
static int gather(const struct reading *reading, const uint8_t *piece, size_t count,
	uint64_t *follow, struct gathered *gathered, struct error *err);
static uint64_t load32(const uint8_t *from);
static void gather_one(const struct reading *reading, uint64_t element, struct gathered *gathered);
static int blame(const struct reading *reading, struct error *err);

int delta_changes_read(struct delta_changes *changes, const struct delta_reader *reader,
	struct tensor_source *base, size_t tensor, struct error *err)
{
	const struct schema *const schema = delta_changes_schema(changes);
	const struct delta_entry **entries = NULL;
	if (delta_reader_bind(reader, schema, &entries, err) != 0)
		return delta_reader_blame(reader, err);
	const struct reading reading = {
		.changes = changes,
		.reader = reader,
		.entry = entries[tensor],
		.facts = schema_tensor(schema, tensor),
		.tensor = tensor,
	};
	free(entries);
	if (reading.entry == NULL || read_entry(&reading, base, err) == 0)
		return 0;
	return blame(&reading, err);
}

static int read_entry(const struct reading *reading, struct tensor_source *base, struct error *err)
{
	return base != NULL ? walk(reading, base, true, err) : read_alone(reading, err);
}

static int walk(
	const struct reading *reading, struct tensor_source *base, bool proves, struct error *err)
{
	struct entry_map map = {0};
	struct entry_decoder *const decoder = entry_decoder_new();
	struct tensor_cursor *const cursor = tensor_source_open(base, reading->tensor, err);
	decoder->proves = proves;
	decoder->checksum_kind = delta_reader_metadata(reading->reader)->checksum;
	int result =
		cursor == NULL ? -1 : entry_map_make(&map, reading->entry, reading->facts, err);
	if (result == 0)
		result = entry_decoder_begin(decoder, reading->entry, reading->facts, &map, 0, err);
	if (result == 0)
		result = walk_blocks(
			reading, decoder, cursor, tensor_source_blocks(base, reading->tensor), err);
	tensor_cursor_close(cursor);
	entry_decoder_free(decoder);
	entry_map_release(&map);
	return result;
}

static int walk_blocks(const struct reading *reading, struct entry_decoder *decoder,
	struct tensor_cursor *base, uint64_t blocks, struct error *err)
{
	struct tensor_block block = {.tensor = reading->tensor};
	for (; block.number < blocks; block.number++) {
		const int taken = tensor_cursor_next(base, &block.base, err);
		if (taken < 0)
			return -1;
		ASSERT(taken == 1);
		if (entry_decoder_next(decoder, block.base, &block.next, err) != 0)
			return -1;
		delta_changes_add(reading->changes, &block);
		block.at += block.next.len;
	}
	return 0;
}

static int read_alone(const struct reading *reading, struct error *err)
{
	switch (reading->entry->kind) {
	case DELTA_ENTRY_SPARSE:
		return read_sparse(reading, err);
	case DELTA_ENTRY_XOR:
		return read_xor(reading, err);
	case DELTA_ENTRY_OVERWRITE:
		return read_overwrite(reading, err);
	case DELTA_ENTRY_WHOLE:
	case DELTA_ENTRY_BLOCKS:
		break;
	}
	return error_set(err, ERROR_UNSUPPORTED,
		"the elements that a delta of the format %s changes cannot be told without its base",
		delta_format_name(delta_reader_format(reading->reader)));
}

static int read_xor(const struct reading *reading, struct error *err)
{
	struct tensor_source *const zeros = zero_source_new(delta_changes_schema(reading->changes));
	const int result = walk(reading, zeros, false, err);
	tensor_source_free(zeros);
	return result;
}

static int read_sparse(const struct reading *reading, struct error *err)
{
	const uint64_t elements = reading->facts->bytes * 8 / dtype_bits(reading->facts->dtype);
	uint16_t *const positions = memory_new_array(DELTA_CHANGES_RUN, sizeof(positions[0]));
	struct index_decoder index;
	int result = 0;
	index_decoder_init(&index, &reading->entry->code, reading->entry->index, elements);
	for (uint64_t at = 0; at < elements && result == 0; at += DELTA_CHANGES_RUN) {
		const uint64_t left = elements - at;
		size_t count = 0;
		result = index_decoder_take(&index, at,
			left < DELTA_CHANGES_RUN ? (size_t)left : DELTA_CHANGES_RUN, positions,
			&count, err);
		if (result == 0)
			delta_changes_put(reading->changes, reading->tensor, at / DELTA_CHANGES_RUN,
				positions, count);
	}
	free(positions);
	return result;
}

static int read_overwrite(const struct reading *reading, struct error *err)
{
	struct zstd_reader *const frame = zstd_reader_new();
	struct gathered gathered = {
		.positions = memory_new_array(DELTA_CHANGES_RUN, sizeof(gathered.positions[0]))};
	int result = zstd_reader_begin(frame, reading->entry->data, err);
	if (result == 0)
		result = gather_frame(reading, frame, &gathered, err);
	if (result == 0 && gathered.count > 0)
		delta_changes_put(reading->changes, reading->tensor, gathered.run,
			gathered.positions, gathered.count);
	free(gathered.positions);
	zstd_reader_free(frame);
	return result;
}

/* The frame has a count, the places of bytes, and their values, which nobody needs here. */
static int gather_frame(const struct reading *reading, struct zstd_reader *frame,
	struct gathered *gathered, struct error *err)
{
	uint8_t word[POSITION_BYTES];
	if (zstd_reader_take(frame, word, sizeof(word), err) != 0)
		return -1;
	const uint64_t bytes = load32(word);
	if (bytes > reading->facts->bytes)
		return error_set(err, ERROR_INVALID, "it changes more bytes than the tensor has");
	uint8_t *const piece = memory_new_array(PIECE_POSITIONS, POSITION_BYTES);
	uint64_t follow = 0;
	int result = 0;
	for (uint64_t left = bytes; left > 0 && result == 0;) {
		const size_t count = left < PIECE_POSITIONS ? (size_t)left : PIECE_POSITIONS;
		left -= count;
		result = zstd_reader_take(frame, piece, count * POSITION_BYTES, err);
		if (result == 0)
			result = gather(reading, piece, count, &follow, gathered, err);
	}
	free(piece);
	if (result == 0)
		result = zstd_reader_take(frame, NULL, bytes, err);
	return result == 0 ? zstd_reader_end(frame, err) : -1;
}

static int gather(const struct reading *reading, const uint8_t *piece, size_t count,
	uint64_t *follow, struct gathered *gathered, struct error *err)
{
	const unsigned bits = dtype_bits(reading->facts->dtype);
	const uint64_t width = bits < 8 ? 1 : bits / 8;
	for (size_t i = 0; i < count; i++) {
		const uint64_t place = load32(piece + POSITION_BYTES * i);
		if (place < *follow || place >= reading->facts->bytes)
			return error_set(err, ERROR_INVALID,
				"a position is not above the one before it, or beyond the tensor");
		*follow = place + 1;
		gather_one(reading, place / width, gathered);
	}
	return 0;
}

static uint64_t load32(const uint8_t *from)
{
	return (uint64_t)from[0] | (uint64_t)from[1] << 8 | (uint64_t)from[2] << 16 |
		(uint64_t)from[3] << 24;
}

/* Several bytes of an element count once. */
static void gather_one(const struct reading *reading, uint64_t element, struct gathered *gathered)
{
	const uint64_t run = element / DELTA_CHANGES_RUN;
	const uint16_t position = (uint16_t)(element % DELTA_CHANGES_RUN);
	if (gathered->count > 0 && gathered->run != run) {
		delta_changes_put(reading->changes, reading->tensor, gathered->run,
			gathered->positions, gathered->count);
		gathered->count = 0;
	}
	gathered->run = run;
	if (gathered->count == 0 || gathered->positions[gathered->count - 1] != position)
		gathered->positions[gathered->count++] = position;
}

static int blame(const struct reading *reading, struct error *err)
{
	const struct span name = reading->facts->name;
	/* "corrupt" is for our own stored bytes; here the delta's zstd frame is malformed. */
	if (err->kind == ERROR_CORRUPT)
		err->kind = ERROR_INVALID;
	error_wrap(err, "tensor '%.*s'",
		(int)(name.len < SHOWN_NAME_BYTES ? name.len : SHOWN_NAME_BYTES), name.data);
	return delta_reader_blame(reading->reader, err);
}
