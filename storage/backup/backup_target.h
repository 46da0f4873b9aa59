/* The place of a backup, as a table of operations: a folder, or a prefix of a bucket of an S3
 * service. It holds objects of up to BACKUP_OBJECT_MAX_BYTES under names that the backup makes:
 * KIND/NAME, of letters, digits, '.' and '-'. An object is there as a whole or not at all. One
 * thread at a time. Drivers: target_folder, target_s3. */
#ifndef STORAGE_BACKUP_BACKUP_TARGET_H
#define STORAGE_BACKUP_BACKUP_TARGET_H

#include "base/file.h"

enum { BACKUP_NAME_BYTES = 160, BACKUP_PIECE_MAX_BYTES = 64 * 1024 * 1024 };
/* A manifest may be larger than a piece. */
static const size_t BACKUP_OBJECT_MAX_BYTES = (size_t)1 << 30;

struct backup_target;

struct backup_object { /* as a listing tells it */
	const char *name;
	uint64_t bytes;
	int64_t changed_ms; /* by the clock of the target */
};
typedef int backup_target_take_fn(
	void *taker, const struct backup_object *object, struct error *err);

struct backup_target_ops {
	/* Replaces an object of that name. When it returns 0, the bytes survive a power cut of the
	 * target and have been compared there with what was sent. */
	int (*put)(struct backup_target *target, const char *name, struct span bytes,
		struct error *err);
	/* Appends to `out`, up to its cap. not_found when there is none. */
	int (*get)(struct backup_target *target, const char *name, struct buffer *out,
		struct error *err);
	/* Gives all objects KIND/..., in any order. A kind without objects is not an error. */
	int (*list)(struct backup_target *target, const char *kind, backup_target_take_fn *take,
		void *taker, struct error *err);
	/* 0 when it is absent. After a power cut of the target it may be there again. */
	int (*remove)(struct backup_target *target, const char *name, struct error *err);
	/* The place as it is now is the one that is meant: from here on put fails with not_found
	 * where another folder is at its path, as when a disk is unmounted. */
	int (*pin)(struct backup_target *target, struct error *err);
	/* What was removed of a kind stays so from here on. */
	int (*settle)(struct backup_target *target, const char *kind, struct error *err);
	void (*free)(struct backup_target *target);
};
struct backup_target { /* embed first */
	const struct backup_target_ops *ops;
	bool is_far; /* a request costs more than a file */
	/* Set by the caller: told of the first failure after which a request is sent again. NULL:
	 * nobody is told. */
	void (*tell)(void *owner, const struct error *err);
	void *owner;
};

/* invalid for what is neither s3://BUCKET nor a path, such as s3:/BUCKET. */
int backup_place_check(const char *place, struct error *err);
/* `place` is a folder, which is made when `makes` is set, or s3://BUCKET/PREFIX. `files` is for the
 * folder. invalid: the place; not_found: there is no such folder. */
struct backup_target *backup_target_open(
	const char *place, bool makes, const struct file_ops *files, struct error *err);
void backup_target_free(struct backup_target *target); /* NULL is fine */

/* The drivers. `place` is the folder's path, or what follows on s3://. */
struct backup_target *target_folder_open(
	const char *place, bool makes, const struct file_ops *files, struct error *err);
struct backup_target *target_s3_open(const char *place, struct error *err);

#endif
