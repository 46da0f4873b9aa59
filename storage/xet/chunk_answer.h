/* The answer to a client that asks whether a chunk is stored here: the xorb that has the chunk, in
 * a shard of the answer form (chunker/shard.h). A key of the day hides the ids of the xorb's
 * chunks, so a client that does not have the chunks learns only their sizes. It does not matter
 * which caller stored the chunk, or through which face. An answer to a caller that may write is a
 * promise: the xorb stays while the answer counts (invariant 5). An answer to a caller that only
 * reads promises nothing and counts for the moment, because readers must not keep bytes from gc. */
#ifndef STORAGE_XET_CHUNK_ANSWER_H
#define STORAGE_XET_CHUNK_ANSWER_H

#include "base/buffer.h"
#include "chunker/chunk.h"
#include "storage/core/call.h"

/* Makes the call, or returns NULL with not_found when no chunk of this id can be promised. That
 * mostly takes microseconds, because clients ask for each file that they send. The call also fails
 * with not_found when gc works on the pack, or when chunks of the xorb are gone or damaged. */
struct call *chunk_answer_call(
	struct store *store, const struct chunk_id *id, bool promises, struct error *err);
/* After the call has ended well: moves the shard to `out`, which the caller releases. */
void chunk_answer_result(struct call *call, struct buffer *out);

/* The key of the UTC day of this time. */
void chunk_answer_key(const struct store *store, int64_t wall_ms, uint8_t out[32]);

#endif
