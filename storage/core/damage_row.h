/* The table `damaged_chunks`: chunks whose stored bytes were found damaged and not found right
 * since then. The rows of a pack are dropped with its row in `packs`. Internal to storage. */
#ifndef STORAGE_CORE_DAMAGE_ROW_H
#define STORAGE_CORE_DAMAGE_ROW_H

#include "storage/db/db.h"
#include "storage/packs/chunk_index.h"

/* Does nothing for a pack without a row. */
int damage_row_add(struct db *db, const struct chunk_place *place, struct error *err);
/* Drops the rows of chunks [first, first + count). */
int damage_row_drop(struct db *db, const struct pack_id *pack, uint32_t first, uint32_t count,
	struct error *err);
int damage_row_drop_pack(struct db *db, int64_t number, struct error *err);
/* Gives `take` up to `limit` of them. */
int damage_row_each(struct db *db, size_t limit,
	void (*take)(void *taker, const struct chunk_place *place), void *taker, struct error *err);

#endif
