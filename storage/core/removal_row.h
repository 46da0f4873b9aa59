/* The table `removals`: files of packs that gc has dropped, or replaced by others. A name comes
 * here in the very change that takes it out of `packs`, so that whatever stands here may be
 * removed, more than once, as soon as the pack cache does not name it any more; it leaves when the
 * removal is durable. Internal to storage. */
#ifndef STORAGE_CORE_REMOVAL_ROW_H
#define STORAGE_CORE_REMOVAL_ROW_H

#include "storage/db/db.h"
#include "storage/packs/segment.h"

int removal_row_add(struct db *db, const struct pack_id *file, struct error *err);
int removal_row_drop(struct db *db, const struct pack_id *file, struct error *err);
/* Up to `limit` of them (0: all); free() the array. */
int removal_row_list(struct db *db, size_t limit, struct pack_id **out_files, size_t *out_count,
	struct error *err);

#endif
