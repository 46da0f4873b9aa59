/* Streams an object's bytes, or a range of them, out of packs, and verifies each record (invariant
 * 7). Holds the packs that it reads. One thread at a time. */
#ifndef STORAGE_PACKS_ASSEMBLE_H
#define STORAGE_PACKS_ASSEMBLE_H

#include "base/stream.h"
#include "storage/packs/pack_store.h"

/* `segments` (copied) are those of the object, in order. Reads [offset, offset + length) of their
 * bytes. Reads of at least ASSEMBLE_BLOCK_BYTES at a time avoid a copy for raw chunks. Close frees
 * the source. range when the bytes lie outside the object. In a far place (backend.h) opening never
 * blocks, and the source has let_wait. */
enum { ASSEMBLE_BLOCK_BYTES = 256 * 1024 };
struct body_source *assemble_open(struct pack_store *packs, const struct segment *segments,
	size_t count, uint64_t offset, uint64_t length, struct error *err);
/* Before bytes [offset, offset + length) of the segments are read: 1 when a chunk that holds some
 * of them was seen damaged and still is, else 0. A chunk that the disk gives back is right again.
 * Costs nothing while no damage is known. */
int assemble_check_damaged(struct pack_store *packs, const struct segment *segments, size_t count,
	uint64_t offset, uint64_t length, struct error *err);
/* A source over a copy of inline bytes. */
struct body_source *assemble_open_inline(struct span bytes);

#endif
