/* A stream fills memory, which grows with it to 4 MiB. When that is full, it goes to the end of the
 * stream's file, which is made at the first time. So a stream of up to 4 MiB has no file, and a
 * read takes its front from the file and its end from memory. The lock guards only the staging:
 * each stream has one writer. */
#include "weights/model/spool.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread/lock.h"

enum {
	HELD_BYTES = 4 << 20,       /* bytes that a stream holds in memory */
	HELD_BYTES_FIRST = 16 << 10 /* what it begins with */
};

struct stream {
	uint8_t *held; /* NULL before the first byte */
	size_t held_len;
	size_t held_room;
	uint64_t written; /* bytes in the file, in front of the held ones */
	int fd;           /* -1: no file yet */
};

struct spool {
	struct staging *staging;
	const struct file_ops *ops;
	struct stream *streams;
	size_t count;
	struct lock lock; /* guards the staging */
};

static int flush(struct spool *spool, struct stream *stream, struct error *err);
static void make_room(struct stream *stream, size_t more);

struct spool *spool_new(struct staging *staging, const struct file_ops *ops, size_t streams)
{
	struct spool *const spool = memory_new(sizeof(*spool));
	spool->staging = staging;
	spool->ops = ops;
	spool->streams = memory_new_array(streams, sizeof(spool->streams[0]));
	spool->count = streams;
	for (size_t i = 0; i < streams; i++)
		spool->streams[i].fd = -1;
	lock_init(&spool->lock, LOCK_TENSOR_PASS);
	return spool;
}

void spool_free(struct spool *spool)
{
	if (spool == NULL)
		return;
	for (size_t i = 0; i < spool->count; i++)
		free(spool->streams[i].held);
	lock_release(&spool->lock);
	free(spool->streams);
	free(spool);
}

uint64_t spool_end(const struct spool *spool, size_t stream)
{
	ASSERT(stream < spool->count);
	return spool->streams[stream].written + spool->streams[stream].held_len;
}

int spool_add(struct spool *spool, size_t number, struct span bytes, struct error *err)
{
	ASSERT(number < spool->count);
	struct stream *const stream = &spool->streams[number];
	for (size_t at = 0; at < bytes.len;) {
		if (stream->held_len == HELD_BYTES && flush(spool, stream, err) != 0)
			return -1;
		make_room(stream, bytes.len - at);
		const struct span piece = span_slice(bytes, at, HELD_BYTES - stream->held_len);
		memcpy(stream->held + stream->held_len, piece.data, piece.len);
		stream->held_len += piece.len;
		at += piece.len;
	}
	return 0;
}

int spool_read(const struct spool *spool, size_t number, uint64_t at, uint8_t *into, size_t len,
	struct error *err)
{
	ASSERT(number < spool->count);
	const struct stream *const stream = &spool->streams[number];
	ASSERT(at + len <= spool_end(spool, number));
	const size_t filed = at >= stream->written ? 0
		: stream->written - at < len       ? (size_t)(stream->written - at)
						   : len;
	const struct iovec part = {.iov_base = into, .iov_len = filed};
	if (filed > 0 &&
		file_read_at(spool->ops, stream->fd, part, (off_t)at, "a scratch file", err) != 0)
		return -1;
	if (filed < len)
		memcpy(into + filed, stream->held + (at + filed - stream->written), len - filed);
	return 0;
}

void spool_rewind(struct spool *spool, size_t number)
{
	ASSERT(number < spool->count);
	spool->streams[number].written = 0;
	spool->streams[number].held_len = 0;
}

static int flush(struct spool *spool, struct stream *stream, struct error *err)
{
	ASSERT(stream->held_len == HELD_BYTES);
	if (stream->fd < 0) {
		lock_enter(&spool->lock);
		stream->fd = staging_scratch(spool->staging, err);
		lock_leave(&spool->lock);
	}
	if (stream->fd < 0)
		return -1;
	if (file_write_at(spool->ops, stream->fd, span_of(stream->held, stream->held_len),
		    (off_t)stream->written, "a scratch file", err) != 0)
		return -1;
	stream->written += stream->held_len;
	stream->held_len = 0;
	return 0;
}

/* For `more` bytes, or for as many of them as are held at a time. */
static void make_room(struct stream *stream, size_t more)
{
	const size_t need =
		more < HELD_BYTES - stream->held_len ? stream->held_len + more : HELD_BYTES;
	size_t room = stream->held_room > 0 ? stream->held_room : HELD_BYTES_FIRST;
	while (room < need)
		room *= 2;
	if (room == stream->held_room)
		return;
	stream->held = memory_grow(stream->held, room, 1);
	stream->held_room = room;
}
