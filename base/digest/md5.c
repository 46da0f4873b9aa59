#include "base/digest/md5.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

struct md5_stream {
	uint32_t state[MD5_STATE_WORDS];
	uint64_t bytes;
	/* the last bytes % MD5_BLOCK_BYTES bytes, an incomplete block */
	uint8_t rest[MD5_BLOCK_BYTES];
};

static void md5_reset(struct md5_stream *stream);
static struct md5_lane md5_blocks(struct md5_stream *stream, struct span bytes);
static void md5_pad(struct md5_stream *stream);

struct md5_stream *md5_stream_new(void)
{
	struct md5_stream *const stream = memory_new(sizeof(*stream));
	md5_reset(stream);
	return stream;
}

void md5_streams_add(struct md5_stream *const streams[], const struct span bytes[], size_t count)
{
	struct md5_lane lanes[MD5_LANES];
	ASSERT(count <= MD5_LANES);
	for (size_t i = 0; i < count; i++)
		lanes[i] = md5_blocks(streams[i], bytes[i]);
	md5_lanes_advance(lanes, count);
}

void md5_stream_add(struct md5_stream *stream, struct span bytes)
{
	md5_streams_add(&stream, &bytes, 1);
}

void md5_stream_result(struct md5_stream *stream, uint8_t out[MD5_BYTES])
{
	md5_pad(stream);
	for (size_t i = 0; i < MD5_BYTES; i++)
		out[i] = (uint8_t)(stream->state[i / 4] >> (8 * (i % 4)));
	md5_reset(stream);
}

void md5_stream_free(struct md5_stream *stream)
{
	free(stream);
}

static void md5_reset(struct md5_stream *stream)
{
	static const uint32_t beginning[MD5_STATE_WORDS] = {
		0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
	memcpy(stream->state, beginning, sizeof(beginning));
	stream->bytes = 0;
}

/* Completes an earlier block and keeps what is left over at the end. Returns the whole blocks
 * between as a lane. */
static struct md5_lane md5_blocks(struct md5_stream *stream, struct span bytes)
{
	const size_t waiting = stream->bytes % MD5_BLOCK_BYTES;
	stream->bytes += bytes.len;
	if (waiting > 0) {
		const struct span piece = span_slice(bytes, 0, MD5_BLOCK_BYTES - waiting);
		if (piece.len > 0)
			memcpy(stream->rest + waiting, piece.data, piece.len);
		bytes = span_slice(bytes, piece.len, bytes.len);
		struct md5_lane lane = {stream->state, stream->rest, 1};
		if (waiting + piece.len == MD5_BLOCK_BYTES)
			md5_lanes_advance(&lane, 1);
	}
	const struct md5_lane lane = {stream->state, bytes.data, bytes.len / MD5_BLOCK_BYTES};
	const struct span rest = span_slice(bytes, lane.blocks * MD5_BLOCK_BYTES, MD5_BLOCK_BYTES);
	if (rest.len > 0)
		memcpy(stream->rest, rest.data, rest.len);
	return lane;
}

/* Adds a one bit, zeros up to 8 bytes before the end of a block, and there the length in bits. */
static void md5_pad(struct md5_stream *stream)
{
	static const uint8_t padding[MD5_BLOCK_BYTES] = {0x80};
	uint8_t length[8];
	for (size_t i = 0; i < sizeof(length); i++)
		length[i] = (uint8_t)(stream->bytes * 8 >> (8 * i));
	const size_t waiting = (stream->bytes + sizeof(length)) % MD5_BLOCK_BYTES;
	md5_stream_add(stream, span_of(padding, MD5_BLOCK_BYTES - waiting));
	md5_stream_add(stream, span_of(length, sizeof(length)));
	ASSERT(stream->bytes % MD5_BLOCK_BYTES == 0);
}
