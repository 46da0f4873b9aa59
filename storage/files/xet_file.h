/* Files that are known by their Xet hash and not, or not yet, by a key: those that a shard has
 * registered, and those that were made of a derived version. Each holds a part set of its own until
 * expires_ms; a version that is made of it shares the set. A grant says who registered a file, and
 * with a token of which bucket: between the shard and the batch that is all that opens it. The
 * tables `xet_files` and `xet_grants`. The calls that write are for changes. Internal to storage.
 * docs/FORMAT.md, "Catalog". */
#ifndef STORAGE_FILES_XET_FILE_H
#define STORAGE_FILES_XET_FILE_H

#include "storage/core/store.h"
#include "storage/db/db.h"
#include "storage/packs/segment.h"

/* a registered file and its grant, from the last time it was registered */
enum { XET_GRANT_MS = 24 * 60 * 60 * 1000 };

struct xet_file {
	struct chunk_id hash;
	uint64_t size; /* above 0 */
	int64_t part_set;
	uint64_t contents; /* sum of the set */
	bool is_made;      /* of a derived version: found by way of versions alone */
	int64_t expires_ms;
};

/* 1 found, 0 absent, -1 (corrupt when the row's checksum does not match). A row whose time is over
 * is found until it is swept. */
int xet_file_row_find(
	struct db *db, const struct chunk_id *hash, struct xet_file *out, struct error *err);
/* Takes over the caller's hold of the set. exists when the hash has a row. */
int xet_file_row_add(struct db *db, const struct xet_file *file, struct error *err);
/* The row stays until expires_ms at least. With is_made false a row that was made becomes a
 * registered one. */
int xet_file_row_touch(struct db *db, const struct chunk_id *hash, bool is_made, int64_t expires_ms,
	struct error *err);
/* Bytes of all files that were made. */
int xet_file_made_bytes(struct db *db, uint64_t *out_bytes, struct error *err);

/* Bytes of all files that a shard has registered and that no version is made of, or not any more:
 * their sets stay until their time is over. */
int xet_file_unused_bytes(struct db *db, uint64_t *out_bytes, struct error *err);

/* Hashes of such files behind `after`, in their order, up to `capacity`. Without those that a shard
 * is still writing (part_growth.h). */
int xet_file_list_unused(struct db *db, const struct chunk_id *after, struct chunk_id *hashes,
	size_t capacity, size_t *out_count, struct error *err);

/* Rows that were found damaged where they stood first: each was removed, so that it is in nobody's
 * way. What it held is let go when its set proves to be the one that the row means; else that
 * stays, and costs its space. Begin with zeros. */
struct xet_file_damage {
	uint64_t rows;
	struct error last; /* names the row */
};
/* Logs and counts what a committed change has set aside, if anything. */
void xet_file_tell_damage(const struct store *store, const struct xet_file_damage *damage);
/* The made file that was used longest ago: 1 found, 0 there is none, -1. */
int xet_file_made_oldest(
	struct db *db, struct xet_file *out, struct xet_file_damage *damage, struct error *err);
/* Removes the row of such a file, and its hold of the set; one that is in use by now, or gone, is
 * left alone. Its grants stay until their time is over: they open nothing, or a file that somebody
 * sends again. */
int xet_file_end_unused(struct db *db, const struct chunk_id *hash, struct xet_file_damage *damage,
	struct error *err);
/* The row goes; its hold of the set is the caller's. */
int xet_file_row_forget(struct db *db, const struct chunk_id *hash, struct error *err);
/* The row goes, and its hold of the set. */
int xet_file_row_remove(struct db *db, const struct xet_file *file, struct error *err);

/* Adds a grant, or makes the one that is there last longer. */
int xet_grant_row_put(struct db *db, const struct chunk_id *file, int64_t bucket,
	struct span account, int64_t expires_ms, struct error *err);
int xet_grant_row_valid(struct db *db, const struct chunk_id *file, int64_t bucket,
	struct span account, int64_t now_ms, bool *out_valid, struct error *err);

/* One slice: removes some rows whose time is over. *out_found: there were any. */
int xet_file_sweep(struct db *db, int64_t now_ms, bool *out_found, struct xet_file_damage *damage,
	struct error *err);
int xet_file_sweep_has_work(struct db *db, int64_t now_ms, bool *out_found, struct error *err);

#endif
