/* What a backup ships: one moment of the catalog, the pack files that it names and the files of the
 * journal that lead to it. Reads the data folder beside the server, which goes on. One thread.
 *
 * The catalog is read in a transaction of its own, so the committed lengths are those of one
 * change. The journal has that change already: a record is written before its COMMIT. Journal files
 * are held open, since the server removes old ones; pack files must be held by a backup hold
 * (backup_holds.h) that was taken before. */
#ifndef STORAGE_BACKUP_BACKUP_SOURCE_H
#define STORAGE_BACKUP_BACKUP_SOURCE_H

#include "storage/backup/backup_manifest.h"
#include "storage/packs/segment.h"

struct source_file {
	char key[BACKUP_KEY_BYTES];
	char *path;
	uint64_t length; /* committed bytes */
	int fd;          /* of a file of the journal; -1: not open */
	struct pack_record pack; /* of the file of a pack */
	uint32_t damaged;        /* chunks of it that are known to be damaged */
};
struct backup_source {
	uint8_t store[BACKUP_STORE_BYTES];
	struct backup_moment moment;
	uint32_t schema;
	uint64_t sums;
	struct source_file *files;
	size_t count;
	size_t capacity;
};
struct source_options {
	const char *folder;
	/* Whether a snapshot of this key was proven before; another one is read whole. */
	bool (*knows)(void *owner, const char *key);
	void *owner;
};
/* busy: the journal does not lead to the last change at present, and may in a second. Release `out`
 * in any case. */
int backup_source_read(
	const struct source_options *options, struct backup_source *out, struct error *err);
void backup_source_release(struct backup_source *source);
/* The packs alone. Release `out` in any case. */
int backup_source_read_packs(const char *folder, struct backup_source *out, struct error *err);
/* The number of the last change and the life, and whose they are, alone. */
int backup_source_peek(const char *folder, struct backup_moment *out,
	uint8_t out_store[BACKUP_STORE_BYTES], struct error *err);

/* Whether the disk takes no writes: then nothing changes, and each of these reads a copy of the
 * catalog in memory. */
bool backup_source_is_read_only(const char *folder);
/* The same of a store that nobody has open; damaged when the catalog lacks acknowledged changes. */
int backup_source_peek_whole(const char *folder, struct backup_moment *out,
	uint8_t out_store[BACKUP_STORE_BYTES], struct error *err);

/* Reads these bytes of a file. not_found and corrupt: it is not there, or shorter than that. */
int source_file_read(const struct source_file *file, uint64_t from, uint8_t *into, size_t len,
	struct error *err);

/* Whether a pack that will not change any more describes itself rightly: nothing else will describe
 * it in a restored store. 0 for other files. `folder` is the data folder. */
int source_file_check(const struct source_file *file, const char *folder, struct error *err);
/* Appends what the file beside such a pack says of it. */
int source_file_index(const struct source_file *file, const char *folder, struct buffer *out,
	struct error *err);

#endif
