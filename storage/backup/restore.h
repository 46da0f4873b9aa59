/* Makes a data folder from a moment of a backup: fetches the files, each piece verified, and makes
 * the catalog from them as a rebuild does (storage/rebuild). The caller holds DIR/lock. One
 * thread. */
#ifndef STORAGE_BACKUP_RESTORE_H
#define STORAGE_BACKUP_RESTORE_H

#include "storage/backup/backup_vault.h"
#include "storage/rebuild/rebuild.h"

struct restore_params {
	struct backup_vault *vault;
	struct backup_moment moment; /* one that the vault has */
	const char *folder;
	const struct file_ops *files;
	int64_t promise_ms; /* as for rebuild_run */
};
struct restore_report {
	uint64_t files;
	uint64_t bytes;
	uint64_t fetched; /* bytes; the others were there from an interrupted run */
	uint64_t lacking; /* files that the backup does not have whole */
	bool was_done;    /* an earlier run had ended but for its mark; nothing else is set */
	struct rebuild_report catalog;
};
/* exists: the folder has a store, or the beginning of a restore of another moment. corrupt, naming
 * the object: a piece is not what was backed up. An interrupted run is repeated and goes on. The
 * folder has no catalog before all is there and proven; until then no server starts on it. */
int restore_run(const struct restore_params *params, struct restore_report *out, struct error *err);

#endif
