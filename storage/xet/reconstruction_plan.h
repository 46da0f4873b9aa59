/* The plan of what a Xet client must fetch for a range of one or more files: terms (runs of chunks
 * of xorbs, in file order) and, for each xorb, the merged ranges of chunks that contain them. No
 * two ranges of a xorb begin at the same chunk, and each term lies whole in one range. A range of a
 * xorb that lies in several packs may consist of pieces of them. Pure; one thread at a time.
 * docs/protocol/xet.md, "GetReconstructionV2". */
#ifndef STORAGE_XET_RECONSTRUCTION_PLAN_H
#define STORAGE_XET_RECONSTRUCTION_PLAN_H

#include "base/error.h"
#include "chunker/chunk.h"
#include "storage/packs/segment.h"

enum { RECONSTRUCTION_TERMS_MAX = 262144 }; /* 8 GiB in chunks of 32 KiB that all lie apart */

/* The place of a xorb. */
struct reconstruction_place {
	struct pack_id pack;
	uint32_t base;   /* number of the xorb's first chunk in the pack */
	uint32_t count;  /* chunks of the xorb when it was written */
	int64_t version; /* not 0: the inline bytes of this version, one chunk; no pack */
};
struct reconstruction_term {
	struct chunk_id xorb;
	uint32_t first; /* chunks [first, end) of the xorb */
	uint32_t end;
	uint64_t bytes; /* uncompressed */
	struct reconstruction_place place;
};
/* Chunks [first, end) of a xorb that lie in one place, and their bytes in the shown xorb. */
struct reconstruction_piece {
	struct reconstruction_place place;
	uint32_t first;
	uint32_t end;
	uint64_t offset;
	uint64_t length;
};
struct reconstruction_range { /* sorted by xorb, then by first */
	struct chunk_id xorb;
	uint32_t first;
	uint32_t end;
	size_t piece; /* index of its first piece; the others follow it */
	size_t piece_count;
	uint64_t total; /* bytes of the shown xorb */
};
struct reconstruction {
	struct reconstruction_term *terms;
	size_t term_count;
	size_t term_capacity;
	struct reconstruction_range *ranges;
	size_t range_count;
	struct reconstruction_piece *pieces;
	size_t piece_count;
	size_t piece_capacity;
};
void reconstruction_release(struct reconstruction *plan); /* a zeroed one is fine */

/* A walk over a file, from its beginning or from the beginning of any run of chunks. Bytes [start,
 * end) of the file are wanted. */
struct reconstruction_walk {
	uint64_t start;
	uint64_t end;
	uint64_t at;   /* where the next run of chunks begins */
	bool began;    /* a term was added */
	uint64_t skip; /* bytes of the first term that lie before `start` */
};
/* Continues the walk with a run of chunks, whose uncompressed sizes are `sizes`. Adds those that
 * lie in the walk's range as one term. too_large when there are more than RECONSTRUCTION_TERMS_MAX
 * terms. */
int reconstruction_add(struct reconstruction *plan, struct reconstruction_walk *walk,
	const struct reconstruction_term *run, const uint32_t *sizes, struct error *err);
/* After the last term: makes ranges and pieces, without their offsets and lengths. The length of an
 * inline piece is the size of its content. Once. */
void reconstruction_merge(struct reconstruction *plan);

#endif
