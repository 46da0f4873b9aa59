/* Reads files and directories of a tree from the table `versions`. Internal to storage. */
#ifndef STORAGE_FILES_TREE_ENTRY_H
#define STORAGE_FILES_TREE_ENTRY_H

#include "storage/db/db.h"
#include "storage/files/tree.h"

/* Current versions of a bucket: those from key `from` (inclusive) on, in byte order of keys, or
 * only the one of `key`. The caller steps, reads and resets the statement. */
struct db_statement *tree_entry_scan(
	struct db *db, int64_t bucket, struct span from, struct error *err);
struct db_statement *tree_entry_seek(
	struct db *db, int64_t bucket, struct span key, struct error *err);
/* Gives the first current key from `from` (inclusive) on: 1, 0 when there is none, or -1. */
int tree_entry_next(struct db *db, int64_t bucket, struct span from,
	uint8_t out[OBJECT_KEY_MAX_BYTES], size_t *out_len, struct error *err);
struct span tree_entry_key(struct db_statement *scan); /* valid until the next step */
/* Adds the row as the next entry of `out`, whose arrays must have room. Texts go to the arena,
 * which may overflow. */
void tree_entry_add(
	struct db_statement *scan, struct span path, struct arena *arena, struct tree *out);

/* The files below a directory of at most OBJECT_KEY_MAX_BYTES. Looks at up to `limit` of them. */
struct tree_below {
	size_t files; /* 0: there is no such directory. `limit`: there may be more files */
	int64_t newest_ms;
};
int tree_entry_below(struct db *db, int64_t bucket, struct span directory, size_t limit,
	struct tree_below *out, struct error *err);

#endif
