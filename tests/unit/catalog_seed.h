/* A new store's catalog for the fixtures that open one: made by the migrations once in a run, then
 * copied, since a test spends most of its time in making it otherwise. Tests of the catalog, of
 * stores and of the daemon begin without. */
#ifndef TESTS_UNIT_CATALOG_SEED_H
#define TESTS_UNIT_CATALOG_SEED_H

#include <stddef.h>

#include "storage/db/db.h"
#include "storage/start/catalog.h"
#include "tests/unit/unit.h"

static inline int catalog_seed_make(const char *path, struct error *err)
{
	struct db *const db = catalog_open(path, err);
	if (db == NULL)
		return -1;
	db_close(db); /* the last connection: nothing stays in a write-ahead log */
	return 0;
}

static inline void catalog_seed(const char *folder)
{
	unit_scratch_seed(folder, "catalog.db", catalog_seed_make);
}

#endif
