/* The table `scratch_versions`: hidden versions that background work has made and nothing else
 * names yet (scratch.h). A row keeps its version. Internal to storage. */
#ifndef STORAGE_VERSIONS_SCRATCH_ROW_H
#define STORAGE_VERSIONS_SCRATCH_ROW_H

#include "storage/db/db.h"

int scratch_row_add(struct db *db, int64_t version, struct error *err);
/* Inside the change that names the version: removes the row, and the version when nothing names
 * it. */
int scratch_row_release(struct db *db, int64_t version, struct error *err);
/* Any version up to `last`. 1 found, 0 none, -1. */
int scratch_row_find(struct db *db, int64_t last, int64_t *out_version, struct error *err);
/* The highest version in the table; 0 when it is empty. */
int scratch_row_last(struct db *db, int64_t *out_version, struct error *err);

#endif
