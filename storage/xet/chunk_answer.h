/* What a client gets that asks whether a chunk is stored here: the xorb that holds it, in a shard
 * of the answer form, which hides the ids of all its chunks with a key of the day
 * (chunker/shard.h): who does not have them learns their sizes alone. Whoever stored the chunk, and
 * through which face, is of no matter. An answer to a caller that may write is a promise: the xorb
 * stays while the answer counts (invariant 5). One to a caller that only reads is not, and counts
 * for the moment: readers shall hold nothing back from gc. */
#ifndef STORAGE_XET_CHUNK_ANSWER_H
#define STORAGE_XET_CHUNK_ANSWER_H

#include "base/buffer.h"
#include "chunker/chunk.h"
#include "storage/core/call.h"

/* NULL with not_found when no chunk of this id can be promised, mostly within microseconds, because
 * it is asked for each file that a client sends. The call fails with not_found too, when gc works
 * on the pack, or chunks of the xorb are gone or damaged. */
struct call *chunk_answer_call(
	struct store *store, const struct chunk_id *id, bool promises, struct error *err);
/* Once the call has ended well: takes the shard over into `out`, which the caller releases. */
void chunk_answer_result(struct call *call, struct buffer *out);

/* The key of the UTC day that this time lies in. */
void chunk_answer_key(const struct store *store, int64_t wall_ms, uint8_t out[32]);

#endif
