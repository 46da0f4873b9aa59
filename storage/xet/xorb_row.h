/* The table `xorbs`: the places of the xorbs that clients may name, and the ends of their promises.
 * For changes; find and is_promised also work with readers. docs/FORMAT.md, "Catalog". Internal to
 * storage. */
#ifndef STORAGE_XET_XORB_ROW_H
#define STORAGE_XET_XORB_ROW_H

#include "storage/db/db.h"
#include "storage/xet/xorb.h"

/* 1 found, 0 absent, -1. */
int xorb_row_find(struct db *db, const struct chunk_id *hash, struct xorb *out, struct error *err);
/* Adds the xorb; pack_number is not used. not_found when its `pack` has no row, or gc is about to
 * delete it. A hash that has a row already keeps its place, and its promise is extended, never
 * shortened. */
int xorb_row_put(struct db *db, const struct xorb *xorb, struct error *err);
/* Whether a xorb of the pack is promised beyond now_ms: then the pack stays. */
int xorb_row_is_promised(
	struct db *db, int64_t pack_number, int64_t now_ms, bool *out, struct error *err);
/* Gives the last end of a promise of a xorb in the pack; 0: there is none. */
int xorb_row_promise_of_pack(
	struct db *db, int64_t pack_number, int64_t *out_ms, struct error *err);
/* Sets the bits of all chunks of such xorbs. */
struct xorb_marks {
	uint8_t *live;   /* a bit for each of the pack's chunks (pack_table.h) */
	uint32_t chunks; /* how many these are */
	size_t rows;     /* grows by those that were read */
};
int xorb_row_mark_promised(struct db *db, int64_t pack_number, int64_t now_ms,
	struct xorb_marks *marks, struct error *err);
/* Gives the last end of a promise in the packs that segments of this part set lead to; 0: there was
 * none. */
int xorb_row_promise_of_set(struct db *db, int64_t part_set, int64_t *out_ms, struct error *err);
/* For a pack that is deleted: removes the rows of all its xorbs. */
int xorb_row_drop_of_pack(struct db *db, int64_t pack_number, struct error *err);
/* For a pack that keeps only those of its `chunks` chunks whose bit in `live` is set
 * (pack_table.h): removes the rows of xorbs that lose a chunk. */
int xorb_row_drop_broken(struct db *db, int64_t pack_number, uint32_t chunks, const uint8_t *live,
	struct error *err);

#endif
