/* Which elements of one 2-byte tensor changed. Found in one pass that hashes both sides while they are in cache; the positions are kept
 * for the second pass (which writes them) as long as a budget shared by all tensors lasts, and are found again where it did not. One
 * thread at a time per struct. */
#ifndef WEIGHTS_TENSOR_CHANGES_H
#define WEIGHTS_TENSOR_CHANGES_H

#include <stdatomic.h>

#include "base/buffer.h"
#include "base/xxh3.h"

struct tensor_changes {
	struct span base;
	struct span next;
	uint64_t count;
	uint64_t largest_gap; /* unchanged elements before a changed one */
	bool kept;
	struct buffer positions; /* uint16_t within their block, all blocks in a row */
	struct buffer counts;    /* uint32_t per block */
};

/* Streams that take the bytes of the two sides; either may be NULL. */
struct tensor_hashes {
	struct xxh3_stream *base;
	struct xxh3_stream *next;
};

/* `base` and `next` have the same even length. `budget` is in bytes and only falls. `scratch` has room for one block of positions. */
void tensor_changes_find(struct tensor_changes *changes, struct span base, struct span next, const struct tensor_hashes *hashes,
	_Atomic int64_t *budget, uint16_t *scratch);
void tensor_changes_release(struct tensor_changes *changes);

uint64_t tensor_changes_blocks(const struct tensor_changes *changes);
/* For the second pass. Start with a zeroed cursor and ask for blocks in order: the positions are in `scratch` or kept memory. */
struct tensor_changes_cursor {
	uint64_t block;
	size_t kept_at;
};
const uint16_t *tensor_changes_next(const struct tensor_changes *changes, struct tensor_changes_cursor *cursor, uint16_t *scratch,
	size_t *out_count);

#endif
