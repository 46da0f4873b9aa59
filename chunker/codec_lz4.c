/* liblz4 does the compression. Around it stand checks for frames that liblz4 accepts and other
 * decoders do not: skippable frames, dictionaries, and matches at offset 0. They must be corrupt
 * here too, because a stored chunk is sent to Xet clients as it is. A match is only visible in the
 * blocks, so a second pass walks their tokens, after liblz4 has proved the layout of the frame. */
#include "chunker/codec_lz4.h"

#include <endian.h>
#include <lz4frame.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum {
	FLAGS_AT = 4,
	CONTENT_SIZE_AT = 6,
	FLAG_DICTIONARY = 1,
	FLAG_CONTENT_SIZE = 8,
	FLAG_BLOCK_CHECKSUM = 16,
	FRAME_MIN_BYTES = 7
};

/* liblz4 takes the smallest block size that holds the content, up to this one. So a chunk is always
 * one block, compressed or stored. */
static const LZ4F_preferences_t preferences = {
	.frameInfo =
		{
			.blockSizeID = LZ4F_max256KB,
			.blockMode = LZ4F_blockIndependent,
			.contentChecksumFlag = LZ4F_noContentChecksum,
			.blockChecksumFlag = LZ4F_noBlockChecksum,
		},
};

struct codec_lz4 {
	LZ4F_dctx *unpack;
};

struct block {
	struct span bytes;
	bool is_stored; /* not compressed */
	size_t end;     /* place in the frame behind the block; 0 before the first block */
};

static bool says_that_it_is_empty(struct span frame);
static bool block_next(struct span frame, struct block *block);
static int check_start(struct span frame, struct error *err);
static int check_matches(struct span frame, struct error *err);
static bool block_is_strict(struct span block);
static size_t skip_length(struct span block, size_t at, unsigned nibble);

struct codec_lz4 *codec_lz4_new(void)
{
	struct codec_lz4 *const lz4 = memory_new(sizeof(*lz4));
	const LZ4F_errorCode_t failed = LZ4F_createDecompressionContext(&lz4->unpack, LZ4F_VERSION);
	ASSERT(!LZ4F_isError(failed));
	return lz4;
}

void codec_lz4_free(struct codec_lz4 *lz4)
{
	if (lz4 == NULL)
		return;
	LZ4F_freeDecompressionContext(lz4->unpack);
	free(lz4);
}

size_t codec_lz4_bound(size_t len)
{
	return LZ4F_compressFrameBound(len, &preferences);
}

size_t codec_lz4_encode(struct span content, uint8_t *into, size_t capacity)
{
	const size_t size =
		LZ4F_compressFrame(into, capacity, content.data, content.len, &preferences);
	ASSERT(!LZ4F_isError(size));
	return size;
}

/* A compressed block is empty when it consists of its token alone. */
bool codec_lz4_is_common(struct span frame)
{
	struct block block = {0};
	bool is_common =
		(frame.data[FLAGS_AT] & FLAG_BLOCK_CHECKSUM) == 0 && !says_that_it_is_empty(frame);
	while (is_common && block_next(frame, &block))
		is_common = block.bytes.len > 1 || (block.is_stored && block.bytes.len == 1);
	return is_common;
}

int codec_lz4_decode(
	struct codec_lz4 *lz4, struct span frame, uint8_t *into, size_t len, struct error *err)
{
	static const LZ4F_decompressOptions_t options = {.stableDst = 1};
	if (check_start(frame, err) != 0)
		return -1;
	LZ4F_resetDecompressionContext(lz4->unpack);
	size_t taken = 0;
	size_t given = 0;
	for (;;) {
		size_t in = frame.len - taken;
		size_t out = len - given;
		const size_t more = LZ4F_decompress(
			lz4->unpack, into + given, &out, frame.data + taken, &in, &options);
		if (LZ4F_isError(more))
			return error_set(err, ERROR_CORRUPT,
				"an LZ4 frame of %zu bytes does not decode: %s", frame.len,
				LZ4F_getErrorName(more));
		taken += in;
		given += out;
		if (more == 0)
			break;
		if (in == 0 && out == 0)
			return error_set(err, ERROR_CORRUPT,
				"an LZ4 frame of %zu bytes is cut off or holds over %zu", frame.len,
				len);
	}
	if (taken != frame.len)
		return error_set(err, ERROR_CORRUPT, "an LZ4 frame ends after %zu of %zu bytes",
			taken, frame.len);
	if (given != len)
		return error_set(
			err, ERROR_CORRUPT, "an LZ4 frame holds %zu bytes, not %zu", given, len);
	return check_matches(frame, err);
}

/* A chunk is never empty. liblz4 ignores a content size of 0. */
static bool says_that_it_is_empty(struct span frame)
{
	static const uint8_t zero[8];
	return (frame.data[FLAGS_AT] & FLAG_CONTENT_SIZE) != 0 &&
		memcmp(frame.data + CONTENT_SIZE_AT, zero, sizeof(zero)) == 0;
}

/* Moves to the next block of a frame that liblz4 has decoded, so its layout is sound. False at the
 * end of the frame. */
static bool block_next(struct span frame, struct block *block)
{
	const uint8_t flags = frame.data[FLAGS_AT];
	const size_t trailer = (flags & FLAG_BLOCK_CHECKSUM) != 0 ? 4 : 0;
	const size_t first = FRAME_MIN_BYTES + ((flags & FLAG_CONTENT_SIZE) != 0 ? 8 : 0);
	const size_t at = block->end > 0 ? block->end : first;
	uint32_t word;
	memcpy(&word, frame.data + at, sizeof(word));
	word = le32toh(word);
	const size_t size = word & INT32_MAX;
	*block = (struct block){
		.bytes = span_slice(frame, at + sizeof(word), size),
		.is_stored = word != size,
		.end = at + sizeof(word) + size + trailer,
	};
	return word != 0;
}

/* liblz4 skips skippable frames, and decodes a frame with an unknown dictionary as if that were
 * empty. Neither is a chunk. */
static int check_start(struct span frame, struct error *err)
{
	static const uint8_t magic[FLAGS_AT] = {0x04, 0x22, 0x4d, 0x18};
	if (frame.len < FRAME_MIN_BYTES || memcmp(frame.data, magic, sizeof(magic)) != 0)
		return error_set(err, ERROR_CORRUPT, "%zu bytes are not an LZ4 frame", frame.len);
	if ((frame.data[FLAGS_AT] & FLAG_DICTIONARY) != 0)
		return error_set(err, ERROR_CORRUPT,
			"an LZ4 frame of %zu bytes asks for a dictionary", frame.len);
	return 0;
}

static int check_matches(struct span frame, struct error *err)
{
	struct block block = {0};
	while (block_next(frame, &block))
		if (!block.is_stored && !block_is_strict(block.bytes))
			return error_set(err, ERROR_CORRUPT,
				"an LZ4 frame of %zu bytes has a match at offset 0", frame.len);
	return 0;
}

/* False when the block has a match at offset 0. liblz4 reads that as zeros, other decoders refuse
 * it, and a chunk that only we can read must not be stored. */
static bool block_is_strict(struct span block)
{
	for (size_t at = 0; at < block.len;) {
		const unsigned token = block.data[at++];
		size_t literals = token >> 4;
		const size_t from = at;
		at = skip_length(block, at, token >> 4);
		for (size_t i = from; i < at && i < block.len; i++)
			literals += block.data[i];
		at += literals;
		if (at + 2 > block.len)
			return true;
		if (block.data[at] == 0 && block.data[at + 1] == 0)
			return false;
		at = skip_length(block, at + 2, token & 15);
	}
	return true;
}

/* A nibble of 15 means that the length goes on in the bytes from `at`. Returns the place behind
 * them. */
static size_t skip_length(struct span block, size_t at, unsigned nibble)
{
	if (nibble < 15)
		return at;
	while (at < block.len && block.data[at] == 255)
		at++;
	return at + 1;
}
