/* Puts pack files back from a backup: those that are missing, cut off, or have damaged records.
 * A file's bytes never change under its name, so the backup has the very bytes. Of a pack that has
 * grown since, the rest comes from the file in its place, if there is one. What lies in the place
 * is set aside, not replaced. The store is not open. One thread. */
#ifndef STORAGE_FSCK_PACK_RETURN_H
#define STORAGE_FSCK_PACK_RETURN_H

#include "storage/backup/backup_fetch.h"

struct pack_return;
/* Reads the newest moment of the vault, and the catalog of the data folder. All is borrowed. */
struct pack_return *pack_return_open(const char *folder, const struct file_ops *files,
	struct backup_vault *vault, struct error *err);
void pack_return_close(struct pack_return *back); /* NULL is fine */

/* Whether the file of the pack with this number in the table `packs` can be put back up to its
 * committed length. Fetches nothing. */
int pack_return_has(struct pack_return *back, int64_t number, bool *out_has, struct error *err);
/* Puts the file of the pack with this number in the table `packs` back. not_found: it
 * cannot be made whole; nothing has changed then. */
int pack_return_run(struct pack_return *back, int64_t number, struct error *err);

#endif
