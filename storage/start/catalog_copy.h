/* A copy of the catalog and its log in memory, for a store that is only read: the original stays
 * untouched. Internal to storage; one thread. */
#ifndef STORAGE_START_CATALOG_COPY_H
#define STORAGE_START_CATALOG_COPY_H

#include "base/file.h"

struct catalog_copy;

/* Makes it in /dev/shm where it fits, else in $TMPDIR or /tmp. Removes copies of the same catalog
 * that killed processes have left. no_space when it fits nowhere. */
struct catalog_copy *catalog_copy_make(
	const struct file_ops *files, const char *catalog_path, struct error *err);
const char *catalog_copy_path(const struct catalog_copy *copy); /* of its catalog.db */
/* Removes it; NULL is fine. */
void catalog_copy_free(struct catalog_copy *copy);

#endif
