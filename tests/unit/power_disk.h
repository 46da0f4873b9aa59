/* The real file system in a scratch folder, with a memory of what a disk would still have after
 * a power cut: of a file the bytes of its last sync, of a folder the names of its last sync.
 * Whatever the code under test did without a sync, a cut may keep or lose; the test chooses.
 * SQLite's files (*.db, *.db-wal) do not pass through the table: a cut takes them along as they
 * are, the worst case for whatever they name. Any thread may use the table. */
#ifndef TESTS_UNIT_POWER_DISK_H
#define TESTS_UNIT_POWER_DISK_H

#include "base/file.h"

struct power_disk;

/* All that lies in `folder` now counts as durable. */
struct power_disk *power_disk_new(const char *folder);
void power_disk_free(struct power_disk *disk);
const struct file_ops *power_disk_files(const struct power_disk *disk);

/* What becomes of that which was never synced. Bytes that were synced before, and names, are as
 * they were then where they are lost now. */
enum power_cut {
	POWER_CUT_DROPS_ALL,
	POWER_CUT_KEEPS_ALL,     /* as if the process alone had died */
	POWER_CUT_KEEPS_NAMES,   /* new files are there and empty */
	POWER_CUT_KEEPS_LENGTHS, /* the same, but new bytes are zeros */
	POWER_CUT_KEEPS_CONTENT, /* new bytes are there; names are the old ones */
	/* new names in the folder itself and in every other level below it */
	POWER_CUT_KEEPS_UPPER,
	POWER_CUT_KEEPS_LOWER, /* new names in the levels between these alone */
	POWER_CUTS
};
/* A new scratch folder with what survives: the caller's, for unit_scratch_remove. The disk goes
 * on. */
char *power_disk_cut(struct power_disk *disk, enum power_cut cut);

/* What happened, a line each, paths relative to the folder ("." is the folder): create PATH,
 * write PATH, cut PATH, sync PATH, sync-folder PATH, rename FROM TO, unlink PATH, mkdir PATH,
 * rmdir PATH, link FROM TO, symlink TARGET PATH. Writes to one file in a row are one line; 16
 * hex digits or more are "*", so that random names do not matter. Valid until something else
 * happens. */
const char *power_disk_trace(const struct power_disk *disk);
void power_disk_forget_trace(struct power_disk *disk);
/* How often a line stands in the trace. */
size_t power_disk_count(const struct power_disk *disk, const char *line);

/* From here on a cut is taken before each line of the trace happens, with all other threads held
 * that come to the table: for tests that look at what every moment would have left. One that would
 * leave the same as the one before it is left out, unless the mark is another. */
void power_disk_cut_each(struct power_disk *disk, enum power_cut cut);
/* One more such cut, now; `line` is what it is called. */
void power_disk_cut_now(struct power_disk *disk, const char *line);
/* A number that goes with the cuts from here on: what was acknowledged by then, say. */
void power_disk_mark(struct power_disk *disk, unsigned mark);
struct power_taken {
	char *folder; /* removed with the disk */
	char *line;   /* what did not happen any more */
	unsigned mark;
};
const struct power_taken *power_disk_taken(const struct power_disk *disk, size_t *out_count);

#endif
