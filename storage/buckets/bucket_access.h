/* What a bucket allows to others is believed only while it is what was stored: the bucket's row
 * carries a sum over its grants and its public access block (docs/FORMAT.md, "Settings of
 * buckets"). When that is wrong the bucket is private until its owner says again who may have it.
 * Internal to storage; the thread of the connection. */
#ifndef STORAGE_BUCKETS_BUCKET_ACCESS_H
#define STORAGE_BUCKETS_BUCKET_ACCESS_H

#include "storage/buckets/bucket_grant.h"
#include "storage/db/db.h"

/* The sum, by its parts: begun, each grant in the order of the table, and the document
 * BUCKET_PUBLIC_ACCESS (empty: none). */
uint64_t bucket_access_begin(int64_t bucket);
uint64_t bucket_access_add(
	uint64_t sum, enum bucket_grant_source source, const struct bucket_grant *grant);
int64_t bucket_access_end(uint64_t sum, struct span block);

/* Asked within a snapshot or a change, as all reading here: the parts prove themselves only as they
 * stood at one moment. */
int bucket_access_is_right(struct db *db, int64_t bucket, bool *out_is_right, struct error *err);
/* Writes the sum of what stands there now, after a change of it. */
int bucket_access_stamp(struct db *db, int64_t bucket, struct error *err);
/* Before a change: what cannot be believed is dropped, and everything public blocked. */
int bucket_access_settle(struct db *db, int64_t bucket, struct error *err);
/* The next bucket whose sum is wrong, behind `after`: 1 with its number and name, 0, -1. */
int bucket_access_next_wrong(struct db *db, int64_t after, struct arena *arena, int64_t *out_bucket,
	struct span *out_name, struct error *err);
/* For the migration that brought the sums: those of all buckets as they are. */
int bucket_access_stamp_all(struct db *db, struct error *err);

#endif
