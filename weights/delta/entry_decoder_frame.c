/* Slime's tensors are one zstd frame each, decoded from front to back. XOR frames are put over the
 * base. OVERWRITE frames have all positions first and then all values, so two readers go through
 * the same frame at two places. The checksum of the whole new tensor is proven at its last
 * block. */
#include <string.h>

#include "base/memory.h"
#include "weights/delta/entry_decoder.h"

enum { RUN_CHANGES = 16384, POSITION_BYTES = 4 };

static int expect_content(const struct entry_decoder *decoder, uint64_t bytes, struct error *err);
static int begin_overwrite(struct entry_decoder *decoder, struct error *err);
static uint32_t load32(const uint8_t *from);
static bool is_last(const struct entry_decoder *decoder);
static void put_over(uint8_t *into, const uint8_t *base, size_t len);
static int prove(struct entry_decoder *decoder, struct span block, struct error *err);
static int overwrite(
	struct entry_decoder *decoder, uint64_t start, uint64_t end, struct error *err);
static int fill_run(struct entry_decoder *decoder, struct error *err);

int entry_frame_begin(struct entry_decoder *decoder, struct error *err)
{
	if (decoder->frame == NULL)
		decoder->frame = zstd_reader_new();
	tensor_checksum_reset(decoder->checksum);
	if (zstd_reader_begin(decoder->frame, decoder->entry->data, err) != 0)
		return -1;
	return decoder->entry->kind == DELTA_ENTRY_XOR
		? expect_content(decoder, decoder->tensor->bytes, err)
		: begin_overwrite(decoder, err);
}

int entry_xor_next(
	struct entry_decoder *decoder, struct span base, struct span *out, struct error *err)
{
	if (zstd_reader_take(decoder->frame, decoder->into, base.len, err) != 0)
		return -1;
	if (is_last(decoder) && zstd_reader_end(decoder->frame, err) != 0)
		return -1;
	put_over(decoder->into, base.data, base.len);
	*out = span_of(decoder->into, base.len);
	return prove(decoder, *out, err);
}

int entry_overwrite_next(
	struct entry_decoder *decoder, struct span base, struct span *out, struct error *err)
{
	const uint64_t start = decoder->block * decoder->block_bytes;
	memcpy(decoder->into, base.data, base.len);
	if (overwrite(decoder, start, start + base.len, err) != 0)
		return -1;
	if (is_last(decoder) && zstd_reader_end(decoder->frame_values, err) != 0)
		return -1;
	*out = span_of(decoder->into, base.len);
	return prove(decoder, *out, err);
}

static int expect_content(const struct entry_decoder *decoder, uint64_t bytes, struct error *err)
{
	uint64_t said;
	if (!zstd_content_size(decoder->entry->data, &said) || said == bytes)
		return 0;
	return error_set(err, ERROR_INVALID, "its zstd frame says %llu bytes and should have %llu",
		(unsigned long long)said, (unsigned long long)bytes);
}

static int begin_overwrite(struct entry_decoder *decoder, struct error *err)
{
	uint8_t count[POSITION_BYTES];
	if (decoder->frame_values == NULL) {
		decoder->frame_values = zstd_reader_new();
		decoder->run_positions = memory_new_array(RUN_CHANGES, POSITION_BYTES);
		decoder->run_values = memory_new(RUN_CHANGES);
	}
	if (zstd_reader_take(decoder->frame, count, sizeof(count), err) != 0)
		return -1;
	decoder->left = load32(count);
	decoder->run_at = decoder->run_count = 0;
	decoder->follow = 0;
	if (decoder->left > decoder->tensor->bytes)
		return error_set(err, ERROR_INVALID, "it changes more bytes than the tensor has");
	if (expect_content(decoder, POSITION_BYTES + (POSITION_BYTES + 1) * decoder->left, err) !=
			0 ||
		zstd_reader_begin(decoder->frame_values, decoder->entry->data, err) != 0)
		return -1;
	return zstd_reader_take(
		decoder->frame_values, NULL, POSITION_BYTES + POSITION_BYTES * decoder->left, err);
}

static uint32_t load32(const uint8_t *from)
{
	return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
		(uint32_t)from[3] << 24;
}

static bool is_last(const struct entry_decoder *decoder)
{
	return (decoder->block + 1) * decoder->block_bytes >= decoder->tensor->bytes;
}

static void put_over(uint8_t *into, const uint8_t *base, size_t len)
{
	size_t i = 0;
	for (; i + sizeof(uint64_t) <= len; i += sizeof(uint64_t)) {
		uint64_t a;
		uint64_t b;
		memcpy(&a, into + i, sizeof(a));
		memcpy(&b, base + i, sizeof(b));
		a ^= b;
		memcpy(into + i, &a, sizeof(a));
	}
	for (; i < len; i++)
		into[i] ^= base[i];
}

static int prove(struct entry_decoder *decoder, struct span block, struct error *err)
{
	char actual[TENSOR_CHECKSUM_TEXT_BYTES];
	const struct span wanted = decoder->entry->checksum;
	if (!decoder->proves)
		return 0;
	tensor_checksum_add(decoder->checksum, block);
	if (!is_last(decoder))
		return 0;
	tensor_checksum_result(decoder->checksum, actual);
	if (span_equal_text(wanted, actual))
		return 0;
	return error_set(err, ERROR_DIGEST_MISMATCH, "its checksum is %s, and the delta says %.*s",
		actual, (int)(wanted.len < 64 ? wanted.len : 64), wanted.data);
}

/* Makes the changes below `end`. All changes below `start` were made with the blocks before. */
static int overwrite(struct entry_decoder *decoder, uint64_t start, uint64_t end, struct error *err)
{
	while (decoder->run_at < decoder->run_count || decoder->left > 0) {
		if (decoder->run_at == decoder->run_count && fill_run(decoder, err) != 0)
			return -1;
		const uint64_t position =
			load32(decoder->run_positions + POSITION_BYTES * decoder->run_at);
		if (position < decoder->follow || position >= decoder->tensor->bytes)
			return error_set(err, ERROR_INVALID,
				"a position is not above the one before it, or beyond the tensor");
		if (position >= end)
			return 0;
		decoder->into[position - start] = decoder->run_values[decoder->run_at++];
		decoder->follow = position + 1;
	}
	return 0;
}

static int fill_run(struct entry_decoder *decoder, struct error *err)
{
	ASSERT(decoder->run_at == decoder->run_count && decoder->left > 0);
	decoder->run_at = 0;
	decoder->run_count = decoder->left < RUN_CHANGES ? (size_t)decoder->left : RUN_CHANGES;
	decoder->left -= decoder->run_count;
	if (zstd_reader_take(decoder->frame, decoder->run_positions,
		    decoder->run_count * POSITION_BYTES, err) != 0)
		return -1;
	return zstd_reader_take(
		decoder->frame_values, decoder->run_values, decoder->run_count, err);
}
