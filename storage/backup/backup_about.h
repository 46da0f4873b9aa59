/* The object about/store of a place, which says whose backups it has and to which key they are
 * encrypted. The manifests say the same, so it can be made again from them. One thread. */
#ifndef STORAGE_BACKUP_BACKUP_ABOUT_H
#define STORAGE_BACKUP_BACKUP_ABOUT_H

#include "storage/backup/backup_vault.h"

#define BACKUP_ABOUT "about/store"

/* All work on `vault->target`. Sets the id and the key of `vault`. not_found; corrupt. */
int backup_about_read(struct backup_vault *vault, struct error *err);
int backup_about_put(const struct backup_vault *vault, struct error *err);

/* Sets the id and the key as the manifests say them, which `vault->identities` open where they are
 * encrypted. All manifests that can be read must agree; where the first one agrees with `expected`,
 * it is enough (NULL: none). not_found: there is no moment; denied: one is encrypted to another
 * key; corrupt: none can be read, or they do not agree. */
int backup_about_prove(
	struct backup_vault *vault, const struct backup_vault *expected, struct error *err);

#endif
