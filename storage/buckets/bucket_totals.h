/* The table `bucket_totals`: how much a bucket shows. Kept up to date in the very change by which a
 * version becomes or ceases to be the current one of its key (version_change.c is the one place
 * that does), so that it is read in place of counting. Markers count nothing. Internal to
 * storage. */
#ifndef STORAGE_BUCKETS_BUCKET_TOTALS_H
#define STORAGE_BUCKETS_BUCKET_TOTALS_H

#include "storage/buckets/bucket.h"
#include "storage/db/db.h"

/* The row of a new bucket. */
int bucket_totals_open(struct db *db, int64_t bucket, int64_t now_ms, struct error *err);
/* Adds, or takes away. `now_ms`: when; 0 when nobody knows, and updated_ms never goes back. A
 * bucket that is gone has no row and none comes. */
int bucket_totals_add(struct db *db, int64_t bucket, int64_t files, int64_t bytes, int64_t now_ms,
	struct error *err);
/* All zero when there is no such bucket. */
int bucket_totals_read(struct db *db, int64_t bucket, struct bucket_totals *out, struct error *err);
/* Bytes of all buckets of the account. */
int bucket_totals_sum(struct db *db, struct span owner, int64_t *out_bytes, struct error *err);
int bucket_totals_drop(struct db *db, int64_t bucket, struct error *err);

#endif
