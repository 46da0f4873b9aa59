/* Makes a data folder from a moment of a backup: fetches the files, each piece verified, and makes
 * the catalog from them as a rebuild does (storage/rebuild). What the place lacks of a pack is
 * told, and the rest comes back; the journal must be whole. The caller holds DIR/lock. One
 * thread. */
#ifndef STORAGE_BACKUP_RESTORE_H
#define STORAGE_BACKUP_RESTORE_H

#include "storage/backup/backup_lack.h"
#include "storage/backup/backup_reader.h"
#include "storage/backup/backup_vault.h"
#include "storage/rebuild/rebuild.h"

struct restore_params {
	struct backup_vault *vault;
	struct backup_moment moment; /* one that the vault has */
	const char *folder;
	const struct file_ops *files;
	int64_t promise_ms; /* as for rebuild_run */
	struct backup_reader *reader; /* renewed meanwhile; NULL: none */
};
struct restore_report { /* release it in any case */
	uint64_t files;
	uint64_t bytes;
	uint64_t fetched; /* bytes; the others were there from an interrupted run */
	struct backup_lacks lacks; /* the files that the backup does not have whole */
	bool is_gone;     /* with not_found: the moment was pruned meanwhile */
	bool was_done;    /* an earlier run had ended but for its mark; nothing else is set */
	struct rebuild_report catalog;
};
/* exists: the folder has a store. corrupt, naming the object: the manifest or a piece of the
 * journal is not what was backed up. An interrupted run goes on, also with another moment: what
 * that one does not need is set aside. The folder has no catalog before all is there and proven;
 * until then no server starts on it. */
int restore_run(const struct restore_params *params, struct restore_report *out, struct error *err);
void restore_report_release(struct restore_report *report); /* a zeroed one is fine */

#endif
