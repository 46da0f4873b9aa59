/* Whether a catalog from before stores had ids belongs to the packs beside it: neither the store
 * nor a pack has an id, and each pack that it names is there. Internal to storage; one thread. */
#ifndef STORAGE_START_OLD_CATALOG_H
#define STORAGE_START_OLD_CATALOG_H

#include "storage/db/db.h"
#include "storage/packs/pack_store.h"

struct old_catalog {
	struct db *db;
	int version; /* of its schema */
	const char *path;
	struct pack_store *packs;
	bool store_has_id; /* as `acknowledged` says */
};
/* Fails with damaged when the store in this folder has an id. */
int old_catalog_check_ids(const struct old_catalog *old, struct error *err);
/* Fails with damaged when a pack is missing. */
int old_catalog_check_packs(const struct old_catalog *old, struct error *err);

#endif
