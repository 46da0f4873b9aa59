/* What tells at a target that somebody restores from it: the object about/reader-ID. While one is
 * there nothing is pruned. It counts for 24 hours after it was put last, by the clock of the
 * target, so that a restore that was killed does not keep everything for ever. One thread. */
#ifndef STORAGE_BACKUP_BACKUP_READER_H
#define STORAGE_BACKUP_BACKUP_READER_H

#include "storage/backup/backup_target.h"

struct backup_reader { /* a zeroed one tells nobody */
	struct backup_target *target; /* borrowed */
	char name[BACKUP_NAME_BYTES];
	int64_t renew_ms; /* when to put it again, by clock_monotonic_ms */
};
/* Before moments are listed. When it fails, the place cannot be written, and what a backup prunes
 * meanwhile is missing. */
int backup_reader_begin(
	struct backup_reader *out, struct backup_target *target, struct error *err);
/* Puts it again once an hour; between two files. */
void backup_reader_renew(struct backup_reader *reader);
/* Removes it. */
void backup_reader_end(struct backup_reader *reader);

/* Gives the name of one that counts, or "". */
int backup_reader_find(
	struct backup_target *target, char out[BACKUP_NAME_BYTES], struct error *err);

#endif
