/* Series of full checkpoints, and the choice of the one that the next checkpoint is stored as a
 * delta of. A series has a root, which is plain, and a head, which is derived from the root. All
 * others are derived from the head. As weights drift, deltas of the head grow until a new head
 * pays, and deltas of the root grow until a new root pays: a stretch continues while the next delta
 * costs less than the stretch did on average. The table `derive_series`. Internal to storage. */
#ifndef STORAGE_DERIVE_DERIVE_SERIES_H
#define STORAGE_DERIVE_DERIVE_SERIES_H

#include "base/digest/xxh3.h"
#include "storage/db/db.h"

/* The root and the head, which are versions, and what the store has spent since each of them: on
 * the root and everything after it, on the head and everything derived from it. */
struct derive_series {
	int64_t root;
	uint64_t root_count;
	uint64_t root_bytes;
	int64_t head; /* 0: none yet */
	uint64_t head_count;
	uint64_t head_bytes;
	uint64_t head_delta; /* what the head itself takes, as a delta of the root */
};

/* Hashes what the checkpoints of a series have in common: the bucket, the key without its digits,
 * the schema. */
struct digest128 derive_series_key(int64_t bucket, struct span key, const struct digest128 *schema);
struct derive_series derive_series_begin(int64_t root, uint64_t size);
/* Whether a checkpoint stays with the head (with the root) if its delta of it takes so many
 * bytes. */
bool derive_series_keeps_head(const struct derive_series *series, uint64_t delta);
bool derive_series_keeps_root(const struct derive_series *series, uint64_t delta);
/* Counts a checkpoint that is derived from the head. */
void derive_series_add(struct derive_series *series, uint64_t delta);
/* Counts a checkpoint that is derived from the root and becomes the head. */
void derive_series_add_head(struct derive_series *series, int64_t head, uint64_t delta);

/* 1 found, 0 absent, -1. */
int derive_series_find(
	struct db *db, const struct digest128 *key, struct derive_series *out, struct error *err);
int derive_series_put(struct db *db, const struct digest128 *key,
	const struct derive_series *series, struct error *err);
/* Forgets series whose root is gone. */
int derive_series_prune(struct db *db, struct error *err);

#endif
