/* The table `xorbs`: where the xorbs lie that clients may name, and how long they are promised.
 * Inside changes; find and is_promised with readers too. docs/FORMAT.md, "Catalog". Internal to
 * storage. */
#ifndef STORAGE_XET_XORB_ROW_H
#define STORAGE_XET_XORB_ROW_H

#include "storage/db/db.h"
#include "storage/xet/xorb.h"

/* 1, 0, -1. */
int xorb_row_find(struct db *db, const struct chunk_id *hash, struct xorb *out, struct error *err);
/* Adds the xorb, whose `pack` must have a row and no gc about to remove it (else not_found);
 * pack_number is of no matter. When the hash has a row already, that one stays where it leads, and
 * its promise is raised: never lowered. */
int xorb_row_put(struct db *db, const struct xorb *xorb, struct error *err);
/* Whether a xorb of the pack is promised for longer than now: then the pack stays. */
int xorb_row_is_promised(
	struct db *db, int64_t pack_number, int64_t now_ms, bool *out, struct error *err);
/* Sets the bits (pack_table.h) of the chunks of those xorbs: of the pack's `chunks` chunks these
 * stay, whatever else leads to them. Adds to *rows how many rows it read. */
int xorb_row_mark_promised(struct db *db, int64_t pack_number, uint32_t chunks, int64_t now_ms,
	uint8_t *live, size_t *rows, struct error *err);
/* Until when the packs are promised that segments of this part set lead to; 0: none ever was. */
int xorb_row_promise_of_set(struct db *db, int64_t part_set, int64_t *out_ms, struct error *err);
/* The pack goes. */
int xorb_row_drop_of_pack(struct db *db, int64_t pack_number, struct error *err);
/* The pack goes on with those of its `chunks` chunks alone whose bit in `live` is set
 * (pack_table.h): xorbs that lack any are forgotten. */
int xorb_row_drop_broken(struct db *db, int64_t pack_number, uint32_t chunks, const uint8_t *live,
	struct error *err);

#endif
