#include "storage/files/file_hasher.h"

#include <stdlib.h>

#include "base/memory.h"
#include "chunker/chunk_stream.h"
#include "chunker/merkle.h"

struct file_hasher {
	struct part_ends *ends;
	struct chunk_stream *chunks;
	struct merkle merkle;
	uint64_t size;
};

static int file_hasher_take(
	void *taker, const struct chunk_id *id, struct span content, struct error *err);

struct file_hasher *file_hasher_new(struct part_ends *ends)
{
	struct file_hasher *const hasher = memory_new(sizeof(*hasher));
	hasher->ends = ends;
	hasher->chunks = chunk_stream_new(file_hasher_take, hasher);
	merkle_init(&hasher->merkle);
	return hasher;
}

/* Pushes cannot fail, because file_hasher_take never does. */
void file_hasher_add(struct file_hasher *hasher, struct span bytes)
{
	struct error ignored;
	for (size_t at = 0; at < bytes.len;) {
		const uint64_t left = part_ends_left(hasher->ends, hasher->size);
		ASSERT(left > 0);
		const struct span piece = span_slice(
			bytes, at, left < bytes.len - at ? (size_t)left : bytes.len - at);
		(void)chunk_stream_push(hasher->chunks, piece, &ignored);
		if (piece.len == left)
			(void)chunk_stream_end(hasher->chunks, &ignored);
		hasher->size += piece.len;
		at += piece.len;
	}
}

struct chunk_id file_hasher_result(struct file_hasher *hasher)
{
	struct error ignored;
	(void)chunk_stream_end(hasher->chunks, &ignored);
	return merkle_file(&hasher->merkle);
}

void file_hasher_free(struct file_hasher *hasher)
{
	if (hasher == NULL)
		return;
	chunk_stream_free(hasher->chunks);
	free(hasher);
}

static int file_hasher_take(
	void *taker, const struct chunk_id *id, struct span content, struct error *err)
{
	struct file_hasher *const hasher = taker;
	const struct chunk_entry chunk = {.id = *id, .size = content.len};
	(void)err;
	merkle_add(&hasher->merkle, &chunk);
	return 0;
}
