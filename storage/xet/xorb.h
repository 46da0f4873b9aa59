/* A xorb that clients may name by its hash: a run of chunks in one pack. Uploaded ones
 * (xorb_put.h), and those that an answer about a chunk named (xorb_promise.h). While one is
 * promised it stays whole and is found, though compaction may take the rest of its pack (invariant
 * 5); after that it is found for as long as it is whole. Any thread. */
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
	int64_t promised_ms;
};
/* not_found. */
int xorb_find(
	struct store *store, const struct chunk_id *hash, struct xorb *out, struct error *err);
/* As xorb_find, and its pack is held until pack_store_unrefer: by then rows may lead to its chunks.
 * busy: gc works on the pack, and may take the xorb, which is not promised any more. */
int xorb_hold(
	struct store *store, const struct chunk_id *hash, struct xorb *out, struct error *err);
/* Bytes of its records as Xet clients see them, headers included. not_found when they are not all
 * there any more, or were seen damaged. */
int xorb_length(struct store *store, const struct xorb *xorb, uint64_t *out, struct error *err);

/* The chunks [first, first + count) of a pack: whether all are there, and then the bytes of their
 * records as above. -1 when the pack's index cannot be read. */
struct xorb_place {
	struct chunk_id hash;
	struct pack_id pack;
	uint32_t first;
	uint32_t count;
};
int xorb_place_measure(struct pack_store *packs, const struct xorb_place *place, bool *out_whole,
	uint64_t *out_bytes, struct error *err);

#endif
