/* A backup that is open, shared by backup.c, which ships, and backup_prune.c. */
#ifndef STORAGE_BACKUP_BACKUP_INTERNAL_H
#define STORAGE_BACKUP_BACKUP_INTERNAL_H

#include "storage/backup/backup.h"

struct backup {
	struct backup_params params;
	struct backup_target *target;
	struct backup_vault vault;
	struct backup_notes *notes;
	struct backup_known *known;
	struct backup_known *own; /* the pieces that this run has put */
	struct backup_moments moments;
	bool is_begun;  /* the vault and what the target has are known */
	uint8_t *piece; /* room for one */
};

/* The manifest of a moment, from the notes or from the target. Release `out` in any case. */
int backup_manifest_of(struct backup *backup, const struct backup_moment *moment,
	struct backup_manifest *out, struct error *err);

#endif
