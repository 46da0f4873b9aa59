/* Marks at a place: the object damaged/FILE says that the pack file FILE described itself wrongly
 * when it was shipped. Its content is the pack's index file, with which the pack is read all the
 * same; it is empty where the store had none. Programs from before there were marks pass over them.
 * docs/FORMAT.md, "Backups". One thread. */
#ifndef STORAGE_BACKUP_BACKUP_MARK_H
#define STORAGE_BACKUP_BACKUP_MARK_H

#include "storage/backup/backup_source.h"
#include "storage/backup/backup_vault.h"

#define BACKUP_MARKS "damaged"

/* Marks a pack; `folder` is the data folder. */
int backup_mark_put(struct backup_vault *vault, const struct source_file *pack, const char *folder,
	struct error *err);
/* Puts the index again where the mark there has other bytes than the store has. *out_mended: it
 * did. */
int backup_mark_mend(struct backup_vault *vault, const struct source_file *pack, const char *folder,
	bool *out_mended, struct error *err);
/* Reads the index of a marked pack; empty: there is none. */
int backup_mark_get(
	struct backup_vault *vault, const char *key, struct buffer *out, struct error *err);

/* Gives the keys of all packs that are marked, and when. */
typedef int backup_mark_take_fn(
	void *taker, const char *key, int64_t changed_ms, struct error *err);
int backup_marks_each(
	struct backup_target *target, backup_mark_take_fn *take, void *taker, struct error *err);
/* The object of a pack. */
void backup_mark_name(const char *key, char out[BACKUP_NAME_BYTES]);

#endif
