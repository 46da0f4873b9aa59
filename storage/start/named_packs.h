/* The packs that a catalog from before stores had ids names: it belongs to a folder only if all of
 * them are there. Internal to storage. */
#ifndef STORAGE_START_NAMED_PACKS_H
#define STORAGE_START_NAMED_PACKS_H

#include "storage/db/db.h"
#include "storage/packs/pack_store.h"

/* `version` is the schema of the catalog, which is not migrated yet; `catalog_path` is for
 * the message. damaged, with the pack that is not there. */
int named_packs_check(struct pack_store *packs, const char *catalog_path, struct db *db,
	int version, struct error *err);

#endif
