/* What a data folder remembers of its backups in one place, in DIR/backup/ID: the manifests of the
 * moments that are there, and the pieces that an unfinished run has put there. A server that has
 * the public key alone cannot read what it wrote, and a large target is slow to read. All of it can
 * be lost: then pieces travel again, and nothing is pruned that cannot be read. One thread; one
 * process, which has DIR/backup/ID/lock. */
#ifndef STORAGE_BACKUP_BACKUP_NOTES_H
#define STORAGE_BACKUP_BACKUP_NOTES_H

#include "storage/backup/backup_known.h"

struct backup_notes;

enum { BACKUP_ID_BYTES = 17 };
/* A name of the place, of 16 hex digits. */
void backup_notes_id(const char *place, char out[BACKUP_ID_BYTES]);

/* Makes the folder. On a disk that is full or takes no writes what is there is read and nothing
 * noted (backup_notes_lack). busy when another backup of this folder to that place is under way. */
struct backup_notes *backup_notes_open(
	const struct file_ops *files, const char *folder, const char *place, struct error *err);
/* To read manifests beside another backup. */
struct backup_notes *backup_notes_look(
	const struct file_ops *files, const char *folder, const char *place);
void backup_notes_close(struct backup_notes *notes); /* NULL is fine */
/* Why nothing can be noted; "": it can. */
const char *backup_notes_lack(const struct backup_notes *notes);
/* Whether there are manifests, so that moments were made there. */
bool backup_notes_had_moments(const struct backup_notes *notes);
const char *backup_notes_folder(const struct backup_notes *notes);

/* Makes the folder again when it was removed, as with a disk that was lost and restored. What it
 * had is forgotten. */
int backup_notes_renew(struct backup_notes *notes, struct error *err);

/* Adds what is remembered. Notes that cannot be read count as lost. */
void backup_notes_recall(struct backup_notes *notes, const uint8_t store[BACKUP_STORE_BYTES],
	struct backup_known *known);
/* A piece was put. A failure only costs that it travels again. */
void backup_notes_add(
	struct backup_notes *notes, const char *key, const struct backup_piece *piece);
/* A moment was put whose manifest has this text. A failure only costs that it must be read from the
 * target. */
void backup_notes_keep(
	struct backup_notes *notes, const struct backup_moment *moment, struct span text);
/* Reads the manifest of a moment; not_found, corrupt. Release `out` in any case. */
int backup_notes_manifest(struct backup_notes *notes, const struct backup_moment *moment,
	struct backup_manifest *out, struct error *err);
/* The moment was removed. */
void backup_notes_drop(struct backup_notes *notes, const struct backup_moment *moment);

#endif
