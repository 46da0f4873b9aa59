/* Prepares the catalog's write-ahead log before SQLite opens it: reads it whole (log_walk.h) and
 * mends single flipped bits. A log that is damaged beyond that is refused, or those of its frames
 * that prove themselves are applied to the catalog. Internal to storage; one thread. */
#ifndef STORAGE_START_CATALOG_LOG_H
#define STORAGE_START_CATALOG_LOG_H

#include "base/thread/log.h"
#include "storage/core/acknowledged.h"
#include "storage/core/store.h"
#include "storage/packs/disk_floor.h"

struct catalog_log_params {
	const struct file_ops *files;
	const char *catalog_path;
	const char *folder; /* the data folder: its journal may have what the log lacks */
	/* the folder for copies of logs; NULL: no copy is kept */
	const char *aside;
	const struct acknowledgement *last; /* as DIR/acknowledged has it */
	const struct disk_floor *floor;     /* no copy is made when the disk is below it */
	struct log *log;                    /* may be NULL */
	/* Applies a damaged log instead of refusing it, unless that would give up what the journal
	 * has. Of a copy nothing is given up. */
	bool accepts_loss;
};
/* *out_is_whole: the log has all acknowledged changes, as far as can be known. damaged: it lacks
 * some, and accepts_loss is not set; nothing has changed then. Frames after the last commit are cut
 * off. If they may have been a commit, a copy of the log is first synced into `aside`; without the
 * copy they stay. */
int catalog_log_prepare(
	const struct catalog_log_params *params, bool *out_is_whole, struct error *err);

#endif
