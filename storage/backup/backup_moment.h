/* A moment of a store that a target keeps: the object moments/TIME-LIFE-CHANGE, whose content is a
 * manifest (backup_manifest.h). Moments are in the order of their lives and changes, whatever the
 * clock said. Any thread. */
#ifndef STORAGE_BACKUP_BACKUP_MOMENT_H
#define STORAGE_BACKUP_BACKUP_MOMENT_H

#include "storage/backup/backup_target.h"

enum { BACKUP_MOMENT_BYTES = 80 };
#define BACKUP_MOMENTS "moments"

struct backup_moment {
	int64_t made_ms; /* whole seconds */
	uint64_t life;   /* of the store */
	int64_t change;  /* the last one in it */
};
/* For example 20261127T005011Z-3-512. */
void backup_moment_print(const struct backup_moment *moment, char out[BACKUP_MOMENT_BYTES]);
bool backup_moment_parse(struct span text, struct backup_moment *out);
/* Below, at or above 0: the first is older, the same, or newer. */
int backup_moment_compare(const struct backup_moment *a, const struct backup_moment *b);
/* The name of the object. */
void backup_moment_name(const struct backup_moment *moment, char out[BACKUP_NAME_BYTES]);

struct backup_moments { /* the oldest first */
	struct backup_moment *items;
	size_t count;
	size_t capacity;
};
/* Puts it in its place. */
void backup_moments_add(struct backup_moments *moments, const struct backup_moment *moment);
/* Those of a target; objects of other names are passed over. */
int backup_moments_list(
	struct backup_target *target, struct backup_moments *out, struct error *err);
void backup_moments_release(struct backup_moments *moments); /* a zeroed one is fine */
/* The one of this text, or of "latest". not_found, naming those that are near. */
int backup_moments_find(const struct backup_moments *moments, const char *text,
	struct backup_moment *out, struct error *err);

#endif
