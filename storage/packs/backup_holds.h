/* Backups that are under way. While one holds the packs no pack file is removed that a change took
 * out of use: a backup names the files of one moment, and ships them long after it. Holds are kept
 * in DIR/backup-holds, so that they survive a restart, and each ends after BACKUP_HOLD_MS at the
 * latest: a backup that takes longer fails, not the disk. Internally locked; any thread.
 * docs/FORMAT.md, "Backup holds". */
#ifndef STORAGE_PACKS_BACKUP_HOLDS_H
#define STORAGE_PACKS_BACKUP_HOLDS_H

#include "base/clock.h"
#include "base/file.h"
#include "base/thread/log.h"

enum {
	BACKUP_HOLD_ID_BYTES = 16,
	BACKUP_HOLD_NAME_BYTES = 65,
	BACKUP_HOLDS_MAX = 16,
	BACKUP_HOLD_MS = 24 * 60 * 60 * 1000
};

struct backup_hold {
	uint8_t id[BACKUP_HOLD_ID_BYTES];  /* random */
	char name[BACKUP_HOLD_NAME_BYTES]; /* of the backup: letters, digits, '.', '_', '-' */
	int64_t made_ms;
	int64_t until_ms;
};

struct backup_holds;

/* `files`, `clock` and `log` are borrowed; `log` may be NULL. Reads the file when it is first
 * needed. One that cannot be read counts as a hold of a backup that nobody knows. */
struct backup_holds *backup_holds_new(const struct file_ops *files, const char *folder,
	const struct clock_source *clock, struct log *log);
void backup_holds_free(struct backup_holds *holds); /* NULL is fine */

/* Durable when it returns 0. It ends a hold of the same name: that backup was given up, or will
 * fail. invalid: the name; busy: there are BACKUP_HOLDS_MAX. */
int backup_holds_take(
	struct backup_holds *holds, const char *name, struct backup_hold *out, struct error *err);
/* The same, but on a disk that is full or takes no writes the hold is in memory alone, and a
 * restart ends it, which its holder learns from backup_holds_end. */
int backup_holds_take_here(
	struct backup_holds *holds, const char *name, struct backup_hold *out, struct error *err);
/* not_found when the hold has ended before. Then files may be gone that the backup names. */
int backup_holds_end(
	struct backup_holds *holds, const uint8_t id[BACKUP_HOLD_ID_BYTES], struct error *err);
/* Those that have not ended; gives their number. */
size_t backup_holds_list(struct backup_holds *holds, struct backup_hold out[BACKUP_HOLDS_MAX]);
/* Whether files must stay. A caller that is about to remove a file asks after the change is
 * committed that took it out of use: a backup that begins later does not name the file. NULL: they
 * need not. */
bool backup_holds_any(struct backup_holds *holds);

#endif
