/* The pieces that a target is known to have, with their digests. A file's bytes never change under
 * its key, so a piece that is there need not travel again. One thread. */
#ifndef STORAGE_BACKUP_BACKUP_KNOWN_H
#define STORAGE_BACKUP_BACKUP_KNOWN_H

#include "storage/backup/backup_manifest.h"

struct backup_known;

struct backup_known *backup_known_new(void);
void backup_known_free(struct backup_known *known); /* NULL is fine */
/* What some note says of a piece; whether the target has it is not known yet. */
void backup_known_add(
	struct backup_known *known, const char *key, const struct backup_piece *piece);
void backup_known_add_all(struct backup_known *known, const struct backup_manifest *manifest);
/* The same of a manifest whose moment is there: it needs its pieces. */
void backup_known_need_all(struct backup_known *known, const struct backup_manifest *manifest);
/* Nothing is known any more of what the target has, nor of what is needed. */
void backup_known_doubt(struct backup_known *known);
/* The target has a piece of that name. */
void backup_known_confirm(
	struct backup_known *known, const char *key, const struct backup_piece *piece);
/* The same for a piece that was just put there. */
void backup_known_add_there(
	struct backup_known *known, const char *key, const struct backup_piece *piece);
/* Forgets it. */
void backup_known_drop(
	struct backup_known *known, const char *key, const struct backup_piece *piece);
bool backup_known_has_piece(
	const struct backup_known *known, const char *key, const struct backup_piece *piece);
bool backup_known_has(const struct backup_known *known, const char *key);
/* Whether the target has it with that digest. */
bool backup_known_is_there(
	const struct backup_known *known, const char *key, const struct backup_piece *piece);
/* Gives a piece of the file that a moment needs and the target lacks; false: there is none from
 * number *at on. *at begins with 0 and is moved behind it. */
bool backup_known_next_missing(const struct backup_known *known, const char *key, size_t *at,
	struct backup_piece *out);
/* How many such pieces there are, of all files. */
uint64_t backup_known_count_missing(const struct backup_known *known);
/* Gives `file` the pieces that are there, from byte 0 on and no further than its length. */
void backup_known_fill(const struct backup_known *known, struct backup_file *file);

#endif
