/* The table `packs`. Internal to storage. */
#ifndef STORAGE_PACK_ROW_H
#define STORAGE_PACK_ROW_H

#include "storage/db.h"
#include "storage/segment.h"

/* Adds the pack, or brings its row up to date. */
int pack_row_record(struct db *db, const struct pack_record *record, struct error *err);
/* All of them, for recovery; free() the array. */
int pack_row_list(struct db *db, struct pack_record **out_records, size_t *out_count, struct error *err);

#endif
