/* Files and directories of a tree, as the table `versions` has them. Internal to storage. */
#ifndef STORAGE_FILES_TREE_ENTRY_H
#define STORAGE_FILES_TREE_ENTRY_H

#include "storage/db/db.h"
#include "storage/files/tree.h"

/* Current versions of a bucket from key `from` (inclusive) in byte order of keys, or the one of key
 * `from` alone. Step, read, reset. */
struct db_statement *tree_entry_scan(
	struct db *db, int64_t bucket, struct span from, struct error *err);
struct db_statement *tree_entry_seek(
	struct db *db, int64_t bucket, struct span key, struct error *err);
/* The first current key from `from` (inclusive) on: 1, 0 when there is none, -1. */
int tree_entry_next(struct db *db, int64_t bucket, struct span from,
	uint8_t out[OBJECT_KEY_MAX_BYTES], size_t *out_len, struct error *err);
struct span tree_entry_key(struct db_statement *scan); /* until the next step */
/* The row as the next entry of `out`, whose arrays have room; texts in the arena, which may
 * overflow. */
void tree_entry_add(
	struct db_statement *scan, struct span path, struct arena *arena, struct tree *out);

/* What lies below a directory, of which up to `limit` files are looked at. */
struct tree_below {
	size_t files; /* 0: there is no such directory. `limit`: there may be more */
	int64_t newest_ms;
};
int tree_entry_below(struct db *db, int64_t bucket, struct span directory, size_t limit,
	struct tree_below *out, struct error *err);

#endif
