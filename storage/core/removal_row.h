/* The table `removals`: pack files that were dropped by gc, or replaced by gc or a mend. The change
 * that takes a file out of `packs` also adds it here. So a file that is named here may be removed,
 * also more than once, as soon as the pack cache does not use it any more. The row is dropped when
 * the removal is durable. Internal to storage. */
#ifndef STORAGE_CORE_REMOVAL_ROW_H
#define STORAGE_CORE_REMOVAL_ROW_H

#include "storage/db/db.h"
#include "storage/packs/segment.h"

int removal_row_add(struct db *db, const struct pack_id *file, struct error *err);
int removal_row_drop(struct db *db, const struct pack_id *file, struct error *err);
/* Lists up to `limit` files (0: all). free() the array. */
int removal_row_list(struct db *db, size_t limit, struct pack_id **out_files, size_t *out_count,
	struct error *err);

#endif
