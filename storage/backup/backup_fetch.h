/* Fetches one file of the data folder from a backup. Each piece is compared with its digest. One
 * thread. */
#ifndef STORAGE_BACKUP_BACKUP_FETCH_H
#define STORAGE_BACKUP_BACKUP_FETCH_H

#include "storage/backup/backup_vault.h"

struct backup_fetch { /* zero the rest; release it in any case */
	struct backup_vault *vault;
	const struct file_ops *files;
	/* Told of each piece that is missing or not what was backed up; the file then has what was
	 * found of it, and zeros where there is nothing. NULL: that fails. */
	void (*take_lack)(void *owner, const struct error *why);
	void *owner;
	uint64_t fetched; /* bytes; pieces that were there are not fetched */
	struct buffer piece;
};
/* Makes the file at `path`, or completes what an interrupted call has left there: it then has
 * the bytes of the pieces, and is synced with its name. Makes none that would have no bytes at all.
 * corrupt, naming the object: a piece is missing, or is not what was backed up. */
int backup_fetch_file(struct backup_fetch *fetch, const struct backup_file *file, const char *path,
	struct error *err);
/* Reads one piece of a file into `out`, which is emptied first. corrupt, naming the object, as
 * above; `out` then has what was found, at most as many bytes as the piece. */
int backup_fetch_piece(struct backup_vault *vault, const char *key,
	const struct backup_piece *piece, struct buffer *out, struct error *err);
void backup_fetch_release(struct backup_fetch *fetch);

#endif
