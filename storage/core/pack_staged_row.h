/* The table `pack_staged`: bytes of shared packs that are not stored in their far place yet
 * (pack_store.h). Internal to storage. */
#ifndef STORAGE_CORE_PACK_STAGED_ROW_H
#define STORAGE_CORE_PACK_STAGED_ROW_H

#include "storage/db/db.h"
#include "storage/packs/pack_store.h"

int pack_staged_row_add(struct db *db, const struct pack_staged *staged, struct error *err);
/* Removes all rows of the pack. */
int pack_staged_row_drop(struct db *db, const struct pack_id *pack, struct error *err);
/* At a start: makes the files of the records' open packs again (pack_store_shared_restore), if the
 * packs lie in a far place. A pack whose rows are not the bytes that its record names is logged,
 * and stays as it is: its objects answer errors, as those of a missing file do. */
void pack_staged_row_restore(struct db *db, struct pack_store *packs,
	const struct pack_record *records, size_t count, struct log *log);

#endif
