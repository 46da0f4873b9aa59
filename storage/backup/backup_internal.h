/* A backup that is open, shared by backup.c, which ships, backup_look.c and backup_prune.c. */
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
	struct backup_known *marked; /* the packs that are marked (backup_mark.h), each as a byte */
	struct backup_moments moments;
	struct backup_lacks lacks; /* of the round */
	bool is_begun;  /* the vault is known */
	int64_t look_due_ms; /* when to list again what the target has; by clock_monotonic_ms */
	uint8_t *piece; /* room for one */
};

/* The manifest of a moment, from the notes or from the target. Release `out` in any case. */
int backup_manifest_of(struct backup *backup, const struct backup_moment *moment,
	struct backup_manifest *out, struct error *err);

/* Opens the place; a folder is made, unless there were moments in it. */
struct backup_target *backup_look_open(struct backup *backup, struct error *err);
/* Whether the place is there and has the backups of this store; an empty one becomes one of it,
 * unless it had moments. */
int backup_look_check(struct backup *backup, const uint8_t store[BACKUP_STORE_BYTES],
	struct error *err);
/* Lists what is there. */
int backup_look(struct backup *backup, struct error *err);
/* A backup_mark_take_fn of `backup`. */
int backup_look_take_mark(void *backup, const char *key, int64_t changed_ms, struct error *err);

#endif
