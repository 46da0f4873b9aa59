/* The catalog file: opened, recognised and brought to this program's schema. Internal to storage. */
#ifndef STORAGE_CATALOG_H
#define STORAGE_CATALOG_H

#include "storage/db.h"

enum { CATALOG_APPLICATION = 0x44425543 }; /* "DBUC" in the file's application_id */

/* Opens for writing, makes it when absent, runs the migrations it lacks, each in a transaction of its own. unsupported when a newer
 * program made it, corrupt when it is not a catalog. */
struct db *catalog_open(const char *path, struct error *err);

#endif
