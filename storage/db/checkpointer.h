/* Moves the catalog's write-ahead log into its file with a PASSIVE checkpoint each second, so that
 * this never happens inside a commit. If the log grows large nevertheless, the committer restarts
 * it. After a second without a write the log's file is truncated. A thread with its own connection.
 * Internal to storage. */
#ifndef STORAGE_DB_CHECKPOINTER_H
#define STORAGE_DB_CHECKPOINTER_H

#include "storage/db/db.h"

struct checkpointer;

/* Runs before each round, and -1 puts the round off: what the log holds must be durable elsewhere
 * first. NULL: nothing to do. */
struct checkpointer_gate {
	int (*pass)(void *owner, struct error *err);
	void *owner;
};
struct checkpointer *checkpointer_start(
	const char *catalog_path, const struct checkpointer_gate *gate, struct error *err);
void checkpointer_stop(struct checkpointer *checkpointer); /* NULL is fine */

#endif
