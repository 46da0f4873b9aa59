/* A xorb that clients may name by its hash: a run of chunks in one pack. It was uploaded
 * (xorb_put.h), or an answer about a chunk has named it (xorb_promise.h). While it is promised it
 * stays whole and is found, though compaction may remove the rest of its pack (invariant 5). After
 * that it is found for as long as it is whole. Any thread. */
#ifndef STORAGE_XET_XORB_H
#define STORAGE_XET_XORB_H

#include "chunker/chunk.h"
#include "storage/core/store.h"
#include "storage/packs/pack_store.h"
#include "storage/packs/segment.h"

struct xorb {
	struct chunk_id hash;
	struct pack_id pack;
	int64_t pack_number;
	uint32_t first; /* chunk number in the pack */
	uint32_t count;
	int64_t promised_ms; /* end of the promise */
};
/* Finds the row of the xorb; not_found. */
int xorb_find(
	struct store *store, const struct chunk_id *hash, struct xorb *out, struct error *err);
/* As xorb_find, and refers the pack until the caller calls pack_store_unrefer; meanwhile the caller
 * may add rows that name its chunks. busy: gc works on the pack and may remove the xorb, whose
 * promise has ended. */
int xorb_refer(
	struct store *store, const struct chunk_id *hash, struct xorb *out, struct error *err);
/* Gives the bytes of the xorb's records as Xet clients see them, headers included. not_found when
 * some were deleted, or were seen damaged. */
int xorb_length(struct store *store, const struct xorb *xorb, uint64_t *out, struct error *err);
/* The same for a thread that must not wait: not_ready when the pack lies in a far place
 * (storage/packs/backend.h) and its index is not in memory. */
int xorb_length_soon(
	struct store *store, const struct xorb *xorb, uint64_t *out, struct error *err);

/* Chunks [first, first + count) of a pack, at least one. */
struct xorb_place {
	struct chunk_id hash;
	struct pack_id pack;
	uint32_t first;
	uint32_t count;
};
/* Tells whether all chunks of the place are present, and the bytes of the records up to the first
 * missing one, as in xorb_length. -1 when the pack's index cannot be read. */
int xorb_place_measure(struct pack_store *packs, const struct xorb_place *place, bool *out_whole,
	uint64_t *out_bytes, struct error *err);

#endif
