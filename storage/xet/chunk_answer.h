/* What a client gets that asks whether a chunk is stored here: the xorb that holds it, in a shard
 * of the answer form, which hides the ids of all its chunks with a key of the day
 * (chunker/shard.h): who does not have them learns their sizes alone. Whoever stored the chunk, and
 * through which face, is of no matter. An answer to who may write is a promise: the xorb stays
 * while the answer counts (invariant 5). One to who only reads is not, and counts for the moment:
 * readers shall hold nothing back from gc. */
#ifndef STORAGE_XET_CHUNK_ANSWER_H
#define STORAGE_XET_CHUNK_ANSWER_H

#include "base/buffer.h"
#include "chunker/chunk.h"
#include "storage/core/store.h"

struct chunk_answer;

/* NULL with not_found when no chunk of this id can be promised, mostly within microseconds, because
 * it is asked for each file that a client sends. Else done comes once, from a helper or the
 * committer, possibly before this returns. */
struct chunk_answer *chunk_answer_start(struct store *store, const struct chunk_id *id,
	bool promises, void (*done)(void *owner), void *owner, struct error *err);
/* After done. Takes the shard over into `out`, which the caller releases. not_found: gc works on
 * the pack, or chunks of the xorb are gone. */
int chunk_answer_outcome(struct chunk_answer *answer, struct buffer *out, struct error *err);
void chunk_answer_free(struct chunk_answer *answer); /* after done; NULL is fine */

/* The key of the UTC day that this time lies in. */
void chunk_answer_key(const struct store *store, int64_t wall_ms, uint8_t out[32]);

#endif
