/* Checks a whole store: the catalog and its log, every row against the rows and files that it names
 * and the other way round, packs, chunk index, journal, steps and what was set aside. Changes
 * nothing; fsck_repair.h does. One thread.
 *
 * A store that nobody uses is read under DIR/lock, which the caller holds. With `is_online` a
 * server may change the store meanwhile: the catalog is read in short snapshots, and what is
 * found in a pack is looked at again, since gc may have moved or removed it. */
#ifndef STORAGE_FSCK_FSCK_H
#define STORAGE_FSCK_FSCK_H

#include "base/file.h"
#include "storage/fsck/finding.h"

enum { FSCK_KEY_BYTES = 32 };

struct fsck_params {
	const char *folder;
	const struct file_ops *files;
	const char *master_key; /* its file; NULL: nobody asks for it */
	/* Reads it as a start does; NULL: it is not tried. */
	int (*read_key)(const char *path, uint8_t out[FSCK_KEY_BYTES], struct error *err);
	bool is_online;
	bool is_quick; /* leaves out reading every record of every pack */
	/* The finding and what it borrows end with the call. */
	void (*found)(void *owner, const struct finding *finding);
	void *owner;
};
struct fsck_report {
	int64_t change; /* the last one of the catalog */
	uint64_t packs;
	uint64_t pack_bytes; /* read from packs */
	uint64_t chunks;     /* whose records were verified */
	uint64_t versions;
	uint64_t steps;
	uint64_t journal_records;
	uint64_t findings[FINDING_DAMAGE + 1]; /* by severity */
};
/* On a disk that takes no writes the databases are read as copies in memory. Returns 0 when
 * everything was checked, whatever was found. Fails with not_found when there is no
 * catalog, with unsupported when its schema is another one than this program's, and with the error
 * of a file that cannot be read at all. What was found before a failure was told. */
int fsck_run(const struct fsck_params *params, struct fsck_report *out, struct error *err);

#endif
