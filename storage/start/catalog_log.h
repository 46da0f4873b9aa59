/* The catalog's write-ahead log before SQLite opens it: walked (log_walk.h), mended where one bit
 * is off, and, when it is damaged, refused or brought into the catalog as far as it proves itself.
 * Internal to storage; one thread. */
#ifndef STORAGE_START_CATALOG_LOG_H
#define STORAGE_START_CATALOG_LOG_H

#include "base/thread/log.h"
#include "storage/core/acknowledged.h"
#include "storage/core/store.h"
#include "storage/packs/disk_floor.h"

struct catalog_log_params {
	const struct file_ops *files;
	const char *catalog_path;
	/* folder for what is kept of a log; NULL: nothing is kept */
	const char *aside;
	const struct acknowledgement *last; /* what was noted beside it */
	const struct disk_floor *floor;     /* no copies are made below it */
	struct log *log;                    /* may be NULL */
	bool accepts_loss;                  /* of changes that were acknowledged */
};
/* *out_is_whole: all that was acknowledged is in it, as far as anybody can tell. damaged: it is
 * not, and that is not accepted; nothing has changed then. What stands behind the last commit is
 * cut off; when that may have been a commit itself, only after a copy of the log was synced into
 * `aside`. */
int catalog_log_prepare(
	const struct catalog_log_params *params, bool *out_is_whole, struct error *err);

#endif
