/* A copy of the catalog from before a migration, for the program that made it: catalog.db in
 * DIR/before-migration/SCHEMA, with its log where it has one. One thread. Internal to storage. */
#ifndef STORAGE_START_MIGRATION_COPY_H
#define STORAGE_START_MIGRATION_COPY_H

#include "base/file.h"

/* No process changes the catalog meanwhile. Durable when it returns 0; takes the place of a copy of
 * the same schema, which an earlier start made that did not come to migrate. */
int migration_copy_make(
	const struct file_ops *files, const char *folder, int schema, struct error *err);

#endif
