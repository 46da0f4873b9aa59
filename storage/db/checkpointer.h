/* Moves the catalog's write-ahead log into its file, a PASSIVE checkpoint each second, so that it
 * never happens inside a commit. The committer restarts the log when it grows large all the same;
 * its file is cut once nobody has written for a second. A thread with a connection of its own.
 * Internal to storage. */
#ifndef STORAGE_DB_CHECKPOINTER_H
#define STORAGE_DB_CHECKPOINTER_H

#include "storage/db/db.h"

struct checkpointer;

struct checkpointer *checkpointer_start(const char *catalog_path, struct error *err);
void checkpointer_stop(struct checkpointer *checkpointer); /* NULL is fine */

#endif
