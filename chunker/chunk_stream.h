/* Cuts pushed bytes into chunks and names them, in one pass. Holds at most one partial chunk
 * (128 KiB). Chunks that lie whole in the pushed bytes are handed out without a copy. One thread at
 * a time. */
#ifndef CHUNKER_CHUNK_STREAM_H
#define CHUNKER_CHUNK_STREAM_H

#include "base/error.h"
#include "chunker/chunk.h"

struct chunk_stream;

/* Returns 0 to go on, or -1 with the error set to stop the push. `content` is borrowed for the
 * call. */
typedef int chunk_take_fn(
	void *taker, const struct chunk_id *id, struct span content, struct error *err);

struct chunk_stream *chunk_stream_new(chunk_take_fn *take, void *taker);
void chunk_stream_free(struct chunk_stream *stream);
/* -1 is the taker's; only chunk_stream_free may follow it. */
int chunk_stream_push(struct chunk_stream *stream, struct span bytes, struct error *err);
/* Hands out the last chunk, if there is one. The stream is then as new. */
int chunk_stream_end(struct chunk_stream *stream, struct error *err);

#endif
