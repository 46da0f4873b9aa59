/* What a moment consists of: the files of the data folder, how long they were, and the pieces that
 * have their bytes. A text with a digest at its end. docs/FORMAT.md, "Backups". One thread. */
#ifndef STORAGE_BACKUP_BACKUP_MANIFEST_H
#define STORAGE_BACKUP_BACKUP_MANIFEST_H

#include "storage/backup/backup_moment.h"
#include "storage/backup/backup_piece.h"

enum { BACKUP_STORE_BYTES = 16 };

struct backup_file {
	char key[BACKUP_KEY_BYTES];
	uint64_t length; /* committed bytes */
	/* They follow on one another from byte 0 on. A file that could not be read has fewer bytes
	 * in its pieces than its length. */
	struct backup_piece *pieces;
	size_t count;
	size_t capacity;
};
struct backup_manifest {
	uint8_t store[BACKUP_STORE_BYTES]; /* the store's id */
	struct backup_moment moment;
	uint32_t schema; /* of the catalog */
	uint64_t sums;   /* table_sums_total of the catalog */
	struct backup_file *files;
	size_t count;
	size_t capacity;
};
/* A zeroed one has no files. */
void backup_manifest_release(struct backup_manifest *manifest);
/* The file is valid until the next one is added. */
struct backup_file *backup_manifest_add(
	struct backup_manifest *manifest, const char *key, uint64_t length);
void backup_file_add(struct backup_file *file, const struct backup_piece *piece);
/* The bytes that its pieces have. */
uint64_t backup_file_covered(const struct backup_file *file);

void backup_manifest_print(const struct backup_manifest *manifest, struct buffer *out);
/* corrupt when it is not whole, and when it is none; unsupported: a newer program made it. Release
 * `out` in any case. */
int backup_manifest_parse(struct span text, struct backup_manifest *out, struct error *err);

#endif
