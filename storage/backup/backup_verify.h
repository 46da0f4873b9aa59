/* Reads every piece that the moments of a place name, compares it with its digest, and puts those
 * that are damaged or missing again, from the data folder where that still has exactly these bytes.
 * Nothing else is written, so it may run beside backups to that place; it tells them not to prune.
 * One thread. */
#ifndef STORAGE_BACKUP_BACKUP_VERIFY_H
#define STORAGE_BACKUP_BACKUP_VERIFY_H

#include "storage/backup/backup.h"

struct backup_name { /* of an object of the place, or of a moment */
	char text[BACKUP_NAME_BYTES];
};
struct backup_names {
	struct backup_name *items;
	size_t count;
	size_t capacity;
};
struct backup_verified { /* release it in any case */
	uint64_t moments;
	uint64_t pieces; /* that are as they were backed up */
	uint64_t bytes;  /* of these */
	struct backup_names mended;
	struct backup_names lost;    /* pieces, and manifests */
	struct backup_names touched; /* moments that need one that is lost */
	/* packs that moments have as the store has them, damaged */
	struct backup_lacks damaged;
	bool needs_identity;         /* with denied: to open an encrypted backup */
};
/* Of `params` `keep`, `spacing_ms` and `recipient` are not used. denied: the place is encrypted,
 * and there is no identity, or another one. invalid: it has the backups of another store. */
int backup_verify(
	const struct backup_params *params, struct backup_verified *out, struct error *err);
void backup_verified_release(struct backup_verified *verified); /* a zeroed one is fine */

#endif
