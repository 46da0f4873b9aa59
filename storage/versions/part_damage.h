/* Tells whether a part of an upload leads to chunks that are known to be damaged, before an object
 * is made of it. Internal to storage. */
#ifndef STORAGE_VERSIONS_PART_DAMAGE_H
#define STORAGE_VERSIONS_PART_DAMAGE_H

#include "storage/core/store.h"
#include "storage/db/db.h"

/* Finds the first part of the set with a number of at least `from` that has such a chunk. The chunk
 * is read once more, since a disk may give right bytes again. 1 and the part's number; 0: there is
 * none; -1. Costs nothing while no damage is known. */
int part_damage_find(struct store *store, struct db *db, int64_t set, uint32_t from,
	uint32_t *out_number, struct error *err);

#endif
