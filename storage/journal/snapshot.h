/* A snapshot: all rows of the catalog at one moment, in one file of the journal. It proves itself:
 * each frame has a checksum, and the rows must add up to the counts and sums of the tables that the
 * catalog had. docs/FORMAT.md, "Journal". One thread. Internal to storage. */
#ifndef STORAGE_JOURNAL_SNAPSHOT_H
#define STORAGE_JOURNAL_SNAPSHOT_H

#include "base/file.h"
#include "storage/db/db.h"
#include "storage/journal/journal_format.h"

struct snapshot_plan {
	const struct file_ops *files;
	const char *path;                    /* a file that does not exist */
	const struct journal_header *header; /* names the moment of the catalog */
	bool (*goes_on)(void *owner);        /* asked now and then: false ends it with busy */
	void *owner;
};
/* Writes the file under another name, syncs it, reads it back, and only then gives it its name.
 * `db` is in a read transaction of that moment. Afterwards the file counts, or there is none. */
int snapshot_make(
	struct db *db, const struct snapshot_plan *plan, uint64_t *out_bytes, struct error *err);
/* Ends the names of files that are not finished. */
#define SNAPSHOT_UNFINISHED ".tmp"
/* Takes rows (row_bytes.h), some at a time. They are proven only when snapshot_read has returned
 * 0. */
typedef int snapshot_take_fn(void *owner, struct span rows, struct error *err);
/* `take` NULL: the snapshot is verified and nothing else. Gives what the counts and sums of its
 * tables add up to (table_sums_total). corrupt when it is not whole. */
int snapshot_read(const char *path, uint64_t *out_sums, snapshot_take_fn *take, void *owner,
	struct error *err);
/* Reads the header alone. */
int snapshot_read_header(const char *path, struct journal_header *out, struct error *err);

#endif
