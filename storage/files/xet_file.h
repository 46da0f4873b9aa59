/* The tables `xet_files` and `xet_grants`. A row of xet_files is a file that is known by its Xet
 * hash and has no key, or no key yet: one that a shard has registered, or a made file
 * (storage/xet/made_file.h). Each row keeps a part set of its own until expires_ms. A version that
 * gets the file's bytes shares the set. A grant names the account that registered a file and the
 * bucket of its token; between the shard and the batch only the grant opens the file. Calls that
 * write are for changes. Internal to storage. docs/FORMAT.md, "Catalog". */
#ifndef STORAGE_FILES_XET_FILE_H
#define STORAGE_FILES_XET_FILE_H

#include "storage/core/store.h"
#include "storage/db/db.h"
#include "storage/packs/segment.h"

/* how long a registered file and its grant stay after the last registration */
enum { XET_GRANT_MS = 24 * 60 * 60 * 1000 };

struct xet_file {
	struct chunk_id hash;
	uint64_t size; /* above 0 */
	int64_t part_set;
	uint64_t contents; /* sum of the set */
	bool is_made;      /* a made file: found only through versions */
	int64_t expires_ms;
};

/* 1 found, 0 absent, -1 (corrupt when the row's checksum does not match). Also finds an expired row
 * that has not been swept yet. */
int xet_file_row_find(
	struct db *db, const struct chunk_id *hash, struct xet_file *out, struct error *err);
/* The row takes over the caller's reference to the set. exists when the hash has a row. */
int xet_file_row_add(struct db *db, const struct xet_file *file, struct error *err);
/* Keeps the row at least until expires_ms. With is_made false a made file becomes a registered
 * one. */
int xet_file_row_touch(struct db *db, const struct chunk_id *hash, bool is_made, int64_t expires_ms,
	struct error *err);
/* Gives the bytes of all made files. */
int xet_file_made_bytes(struct db *db, uint64_t *out_bytes, struct error *err);

/* Gives the bytes of all unused files: those that a shard has registered and that no version
 * shares, or not any more. Their sets stay until the rows expire. */
int xet_file_unused_bytes(struct db *db, uint64_t *out_bytes, struct error *err);

/* The same in slices, with the time until which the last of them stays: adds to `total` what the
 * next `rows` rows of the table hold. Begin with zeros; `after` is the hash of the last row. */
struct xet_file_unused {
	uint8_t after[CHUNK_ID_BYTES];
	uint64_t bytes;
	int64_t until_ms; /* 0: there are none */
	bool ended;       /* no row follows */
};
int xet_file_unused_slice(
	struct db *db, size_t rows, struct xet_file_unused *total, struct error *err);

/* Lists the hashes of up to `capacity` unused files behind `after`, in rising order, without those
 * that a shard is still writing (part_growth.h). */
int xet_file_list_unused(struct db *db, const struct chunk_id *after, struct chunk_id *hashes,
	size_t capacity, size_t *out_count, struct error *err);

/* Counts damaged rows that a call met and removed, so that they do not stop it. The part set that
 * such a row names is released if the set proves to be the row's; otherwise it stays and costs its
 * space. Begin with zeros. */
struct xet_file_damage {
	uint64_t rows;
	struct error last; /* names the row */
};
/* Logs and counts the damage that a committed change has removed, if any. */
void xet_file_tell_damage(const struct store *store, const struct xet_file_damage *damage);
/* Finds the made file that was used longest ago: 1 found, 0 there is none, -1. */
int xet_file_made_oldest(
	struct db *db, struct xet_file *out, struct xet_file_damage *damage, struct error *err);
/* Removes the row of an unused file and releases its set. Does nothing when a version shares the
 * set by now or the row is gone. The grants stay until they expire: they open nothing, or the same
 * file when it is sent again. */
int xet_file_end_unused(struct db *db, const struct chunk_id *hash, struct xet_file_damage *damage,
	struct error *err);
/* Removes the row; its reference to the set passes to the caller. */
int xet_file_row_forget(struct db *db, const struct chunk_id *hash, struct error *err);
/* Removes the row and releases its set. */
int xet_file_row_remove(struct db *db, const struct xet_file *file, struct error *err);

struct xet_grant {
	const struct chunk_id *file;
	int64_t bucket;
	struct span account;
};
/* Adds a grant, or extends the present one. */
int xet_grant_row_put(
	struct db *db, const struct xet_grant *grant, int64_t expires_ms, struct error *err);
int xet_grant_row_valid(struct db *db, const struct xet_grant *grant, int64_t now_ms,
	bool *out_valid, struct error *err);

/* Does one slice: removes some expired rows. *out_found: there were any. */
int xet_file_sweep(struct db *db, int64_t now_ms, bool *out_found, struct xet_file_damage *damage,
	struct error *err);
int xet_file_sweep_has_work(struct db *db, int64_t now_ms, bool *out_found, struct error *err);

#endif
