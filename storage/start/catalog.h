/* Opens the catalog file, recognises it and migrates it to this program's schema. Internal to
 * storage; one thread. */
#ifndef STORAGE_START_CATALOG_H
#define STORAGE_START_CATALOG_H

#include "storage/db/db.h"

enum { CATALOG_APPLICATION = 0x44425543 }; /* "DBUC" in the file's application_id */

/* Opens the catalog for writing, makes it when absent, and runs the migrations it lacks, each in a
 * transaction of its own. unsupported when a newer program made it, corrupt when it is not a
 * catalog. */
struct db *catalog_open(const char *path, struct error *err);
/* Makes a catalog of an earlier schema, which must not exist: the migrations up to that number,
 * and no counts and sums. unsupported: this program does not know the number. */
struct db *catalog_make(const char *path, uint32_t schema, struct error *err);
/* A question before a migration changes the catalog. `version` is the number of the last migration
 * that ran, 0 in a file that was never a catalog. -1 with the error set: nothing is changed, and
 * the opening fails. */
struct catalog_gate {
	int (*ask)(void *owner, struct db *db, int version, struct error *err);
	void *owner;
};
/* As catalog_open, but asks the gate before the first migration that it runs. */
struct db *catalog_open_asking(
	const char *path, const struct catalog_gate *gate, struct error *err);

#endif
