/* Both directions hold a context of libzstd and pass their pieces through it. The reader decodes
 * into the caller's memory, or into a small buffer of its own for content that the caller skips. */
#include "base/format/compress_stream.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/memory.h"

enum { SKIPPED_BYTES = 64 << 10, OUT_LEAST_BYTES = 64 << 10 };
/* RFC 8878: a block holds at most 128 KiB of content, and takes at least three bytes of header and
 * one byte of content. */
enum { CONTENT_BYTES_MOST = 128 << 10, BLOCK_BYTES_LEAST = 4 };

struct zstd_writer {
	ZSTD_CCtx *context;
};

struct zstd_reader {
	ZSTD_DCtx *context;
	ZSTD_inBuffer in;
	bool ended;
	uint8_t skipped[SKIPPED_BYTES];
};

static int take_piece(struct zstd_reader *reader, uint8_t *into, size_t len, struct error *err);
static int decode(struct zstd_reader *reader, ZSTD_outBuffer *out, struct error *err);

struct zstd_writer *zstd_writer_new(int level)
{
	struct zstd_writer *const writer = memory_new(sizeof(*writer));
	writer->context = ZSTD_createCCtx();
	ASSERT(writer->context != NULL);
	ASSERT(!ZSTD_isError(
		ZSTD_CCtx_setParameter(writer->context, ZSTD_c_compressionLevel, level)));
	return writer;
}

void zstd_writer_free(struct zstd_writer *writer)
{
	if (writer == NULL)
		return;
	ZSTD_freeCCtx(writer->context);
	free(writer);
}

void zstd_writer_begin(struct zstd_writer *writer, uint64_t bytes)
{
	ASSERT(!ZSTD_isError(ZSTD_CCtx_reset(writer->context, ZSTD_reset_session_only)));
	ASSERT(!ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(writer->context, bytes)));
}

void zstd_writer_add(
	struct zstd_writer *writer, struct span piece, bool is_last, struct buffer *out)
{
	ZSTD_inBuffer in = {.src = piece.data, .size = piece.len};
	for (bool done = false; !done;) {
		uint8_t *const room = buffer_reserve(out, OUT_LEAST_BYTES);
		if (room == NULL)
			return;
		ZSTD_outBuffer made = {.dst = room, .size = OUT_LEAST_BYTES};
		const size_t left = ZSTD_compressStream2(
			writer->context, &made, &in, is_last ? ZSTD_e_end : ZSTD_e_continue);
		ASSERT(!ZSTD_isError(left));
		buffer_commit(out, made.pos);
		done = is_last ? left == 0 : in.pos == in.size;
	}
	ASSERT(in.pos == in.size);
}

struct zstd_reader *zstd_reader_new(void)
{
	struct zstd_reader *const reader = memory_new(sizeof(*reader));
	reader->context = ZSTD_createDCtx();
	ASSERT(reader->context != NULL);
	return reader;
}

void zstd_reader_free(struct zstd_reader *reader)
{
	if (reader == NULL)
		return;
	ZSTD_freeDCtx(reader->context);
	free(reader);
}

int zstd_reader_begin(struct zstd_reader *reader, struct span frame, struct error *err)
{
	const size_t size = ZSTD_findFrameCompressedSize(frame.data, frame.len);
	/* A skippable frame has no content and would pass for an empty one. */
	const bool is_frame = frame.len >= 4 && frame.data[0] == 0x28 && frame.data[1] == 0xb5 &&
		frame.data[2] == 0x2f && frame.data[3] == 0xfd;
	if (!is_frame || ZSTD_isError(size) || size != frame.len)
		return error_set(
			err, ERROR_CORRUPT, "%zu bytes are not one whole zstd frame", frame.len);
	ASSERT(!ZSTD_isError(ZSTD_DCtx_reset(reader->context, ZSTD_reset_session_only)));
	reader->in = (ZSTD_inBuffer){.src = frame.data, .size = frame.len};
	reader->ended = false;
	return 0;
}

int zstd_reader_take(struct zstd_reader *reader, uint8_t *into, uint64_t len, struct error *err)
{
	if (into != NULL)
		return take_piece(reader, into, (size_t)len, err);
	for (uint64_t at = 0; at < len; at += SKIPPED_BYTES)
		if (take_piece(reader, reader->skipped,
			    (size_t)(len - at < SKIPPED_BYTES ? len - at : SKIPPED_BYTES),
			    err) != 0)
			return -1;
	return 0;
}

int zstd_reader_end(struct zstd_reader *reader, struct error *err)
{
	ASSERT(reader->in.src != NULL);
	uint8_t none[1];
	ZSTD_outBuffer out = {.dst = none, .size = sizeof(none)};
	while (!reader->ended && out.pos == 0)
		if (decode(reader, &out, err) != 0)
			return -1;
	return out.pos == 0
		? 0
		: error_set(err, ERROR_CORRUPT, "a zstd frame holds more bytes than it should");
}

bool zstd_content_size(struct span frame, uint64_t *out_bytes)
{
	const unsigned long long size = ZSTD_getFrameContentSize(frame.data, frame.len);
	if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR ||
		size / CONTENT_BYTES_MOST > frame.len / BLOCK_BYTES_LEAST)
		return false;
	*out_bytes = size;
	return true;
}

static int take_piece(struct zstd_reader *reader, uint8_t *into, size_t len, struct error *err)
{
	ASSERT(reader->in.src != NULL);
	ZSTD_outBuffer out = {.dst = into, .size = len};
	while (out.pos < out.size) {
		if (reader->ended)
			return error_set(err, ERROR_CORRUPT,
				"a zstd frame holds fewer bytes than it should");
		if (decode(reader, &out, err) != 0)
			return -1;
	}
	return 0;
}

static int decode(struct zstd_reader *reader, ZSTD_outBuffer *out, struct error *err)
{
	const size_t read_before = reader->in.pos;
	const size_t made_before = out->pos;
	const size_t left = ZSTD_decompressStream(reader->context, out, &reader->in);
	if (ZSTD_isError(left))
		return error_set(err, ERROR_CORRUPT, "a zstd frame does not decode: %s",
			ZSTD_getErrorName(left));
	reader->ended = left == 0;
	if (!reader->ended && reader->in.pos == read_before && out->pos == made_before &&
		out->pos < out->size)
		return error_set(err, ERROR_CORRUPT, "a zstd frame ends in the middle");
	return 0;
}
