/* Makes a catalog from the journal: a snapshot, and the records that follow on it. Proven by the
 * counts and sums of its tables, which the journal has too. One thread. Internal to storage. */
#ifndef STORAGE_REBUILD_CATALOG_FILLER_H
#define STORAGE_REBUILD_CATALOG_FILLER_H

#include "storage/db/db.h"
#include "storage/journal/journal_history.h"

/* Makes the file `path`, which must not exist, and gives its connection, which keeps sums. Its last
 * change has a number that no file of the journal has: the next start must not take a lost change
 * for one of this catalog. Nothing is synced. NULL with the error set: corrupt when the snapshot or
 * a log is damaged or the result is not what the journal says. The caller removes the file. */
struct db *catalog_filler_make(const char *path, const struct journal_history *history,
	const struct journal_way *way, struct error *err);

#endif
