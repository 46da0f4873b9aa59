/* What a Xet client must fetch for a range of one or more files: terms (runs of chunks of xorbs, in
 * file order) and, for each xorb, the merged ranges of chunks that hold them. No entry is ever
 * listed twice with the same start, and each term lies whole in one range. A xorb that lies in
 * several packs may have a range that is pieced together from them. Pure; one thread's.
 * docs/protocol/xet.md, "GetReconstructionV2". */
#ifndef STORAGE_XET_RECONSTRUCTION_PLAN_H
#define STORAGE_XET_RECONSTRUCTION_PLAN_H

#include "base/error.h"
#include "chunker/chunk.h"
#include "storage/packs/segment.h"

enum { RECONSTRUCTION_TERMS_MAX = 262144 }; /* 8 GiB in chunks of 32 KiB that all lie apart */

/* Where the chunks of a xorb lie. */
struct reconstruction_place {
	struct pack_id pack;
	uint32_t base;   /* chunk number in the pack of the xorb's first chunk */
	uint32_t count;  /* chunks of the xorb as it was written */
	int64_t version; /* not 0: no pack, but the inline bytes of this version, one chunk */
};
struct reconstruction_term {
	struct chunk_id xorb;
	uint32_t first; /* chunks [first, end) of the xorb */
	uint32_t end;
	uint64_t bytes; /* uncompressed */
	struct reconstruction_place place;
};
/* Chunks of one place, and where they are in the shown xorb. */
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
	size_t piece; /* index of its first; they follow on one another */
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

/* A file that is walked from its beginning, or from the beginning of any run of chunks: bytes
 * [start, end) of it are wanted. */
struct reconstruction_walk {
	uint64_t start;
	uint64_t end;
	uint64_t at;   /* where the next run of chunks begins */
	bool began;    /* a term was added */
	uint64_t skip; /* of the first term's bytes: they lie before `start` */
};
/* The file goes on with these chunks, of `sizes` bytes (uncompressed): what of them lies in the
 * walk's range is added as one term. too_large when there are more than
 * RECONSTRUCTION_TERMS_MAX. */
int reconstruction_add(struct reconstruction *plan, struct reconstruction_walk *walk,
	const struct reconstruction_term *run, const uint32_t *sizes, struct error *err);
/* All terms are there: makes ranges and pieces. Their offsets are still to be worked out; the
 * length of an inline one is that of its content. */
void reconstruction_merge(struct reconstruction *plan);

#endif
