/* The table `fold_objects`: which version each object of a fold is. A row keeps its version, which
 * is hidden, like a row of `step_objects` (invariant 6). Internal to storage. */
#ifndef STORAGE_RUNS_FOLD_OBJECT_H
#define STORAGE_RUNS_FOLD_OBJECT_H

#include <stddef.h>

#include "storage/db/db.h"

enum { FOLD_RELEASE_ROWS = 64 };

int fold_object_add(
	struct db *db, int64_t fold, struct span name, int64_t version, struct error *err);
/* 1 found, 0 absent, -1. */
int fold_object_find(
	struct db *db, int64_t fold, struct span name, int64_t *out_version, struct error *err);
int fold_object_count(struct db *db, int64_t fold, size_t *out_count, struct error *err);
/* The objects by name: db_step gives the name in column 0 and the version in column 1; then
 * db_reset. */
struct db_statement *fold_object_scan(struct db *db, int64_t fold, struct error *err);
/* Releases up to FOLD_RELEASE_ROWS objects. Versions that nothing else keeps are removed. *out_more
 * tells whether some may be left. */
int fold_object_release(struct db *db, int64_t fold, bool *out_more, struct error *err);

#endif
