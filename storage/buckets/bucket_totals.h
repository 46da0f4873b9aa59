/* The table `bucket_totals`: the number and bytes of a bucket's current versions, without delete
 * markers. It is read in place of counting. The change by which a version becomes or ceases to be
 * current also updates the totals; version_change.c is the only place that does this. Internal to
 * storage. */
#ifndef STORAGE_BUCKETS_BUCKET_TOTALS_H
#define STORAGE_BUCKETS_BUCKET_TOTALS_H

#include "storage/buckets/bucket.h"
#include "storage/db/db.h"

/* Adds the row of a new bucket. */
int bucket_totals_open(struct db *db, int64_t bucket, int64_t now_ms, struct error *err);
/* Adds to the totals; `files` and `bytes` may be negative. updated_ms becomes `now_ms` unless it is
 * later already; 0 leaves it. Does nothing for a bucket that is gone. */
int bucket_totals_add(struct db *db, int64_t bucket, int64_t files, int64_t bytes, int64_t now_ms,
	struct error *err);
/* All zero when there is no such bucket. */
int bucket_totals_read(struct db *db, int64_t bucket, struct bucket_totals *out, struct error *err);
/* Adds up the bytes of all buckets of an account. */
int bucket_totals_sum(struct db *db, struct span owner, int64_t *out_bytes, struct error *err);
/* Adds up the bytes of all buckets. */
int bucket_totals_sum_all(struct db *db, uint64_t *out_bytes, struct error *err);
int bucket_totals_drop(struct db *db, int64_t bucket, struct error *err);

#endif
