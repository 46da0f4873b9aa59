/* gear finds the ends of chunks in the pushed bytes. A chunk that begins and ends in one push is
 * handed out from there. Otherwise its front is held, and its end is appended before it goes. */
#include "chunker/chunk_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "chunker/gear.h"

struct chunk_stream {
	chunk_take_fn *take;
	void *taker;
	struct gear gear;
	/* the start of the current chunk, from earlier pushes */
	uint8_t *held;
	size_t held_len;
	/* grows with the content, so a small object does not cost a whole chunk's memory */
	size_t held_capacity;
};

static void hold(struct chunk_stream *stream, struct span bytes);
static int hand_out(const struct chunk_stream *stream, struct span content, struct error *err);
static int hand_out_held(struct chunk_stream *stream, struct error *err);

struct chunk_stream *chunk_stream_new(chunk_take_fn *take, void *taker)
{
	ASSERT(take != NULL);
	struct chunk_stream *const stream = memory_new(sizeof(*stream));
	stream->take = take;
	stream->taker = taker;
	gear_init(&stream->gear);
	return stream;
}

void chunk_stream_free(struct chunk_stream *stream)
{
	if (stream != NULL)
		free(stream->held);
	free(stream);
}

int chunk_stream_push(struct chunk_stream *stream, struct span bytes, struct error *err)
{
	size_t at = 0;
	while (at < bytes.len) {
		const struct span rest = span_slice(bytes, at, bytes.len - at);
		const size_t end = gear_next(&stream->gear, rest);
		if (end == 0) {
			hold(stream, rest);
			return 0;
		}
		const struct span piece = span_slice(rest, 0, end);
		at += end;
		if (stream->held_len == 0) {
			if (hand_out(stream, piece, err) != 0)
				return -1;
			continue;
		}
		hold(stream, piece);
		if (hand_out_held(stream, err) != 0)
			return -1;
	}
	return 0;
}

int chunk_stream_end(struct chunk_stream *stream, struct error *err)
{
	gear_init(&stream->gear);
	return stream->held_len == 0 ? 0 : hand_out_held(stream, err);
}

static void hold(struct chunk_stream *stream, struct span bytes)
{
	const size_t len = stream->held_len + bytes.len;
	ASSERT(len <= CHUNK_MAX_BYTES);
	if (len > stream->held_capacity) {
		stream->held_capacity = 2 * len < CHUNK_MAX_BYTES ? 2 * len : CHUNK_MAX_BYTES;
		stream->held = memory_grow(stream->held, stream->held_capacity, 1);
	}
	if (bytes.len > 0)
		memcpy(stream->held + stream->held_len, bytes.data, bytes.len);
	stream->held_len += bytes.len;
}

static int hand_out(const struct chunk_stream *stream, struct span content, struct error *err)
{
	ASSERT(content.len > 0 && content.len <= CHUNK_MAX_BYTES);
	const struct chunk_id id = chunk_hash(content);
	return stream->take(stream->taker, &id, content, err);
}

static int hand_out_held(struct chunk_stream *stream, struct error *err)
{
	const struct span content = span_of(stream->held, stream->held_len);
	stream->held_len = 0;
	return hand_out(stream, content, err);
}
