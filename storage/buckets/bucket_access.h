/* The sum over a bucket's rights. The rights that a bucket gives to others count only while they
 * are as stored: the bucket's row has a sum over its grants and its public access block
 * (docs/FORMAT.md, "Settings of buckets"). While the sum is wrong, the bucket is private until its
 * owner sets the rights again. Internal to storage; used on the thread of the connection. */
#ifndef STORAGE_BUCKETS_BUCKET_ACCESS_H
#define STORAGE_BUCKETS_BUCKET_ACCESS_H

#include "storage/buckets/bucket_grant.h"
#include "storage/db/db.h"

/* Computes the sum in steps: begin, add each grant in the order of the table, and end with the
 * document BUCKET_PUBLIC_ACCESS (empty: none). */
uint64_t bucket_access_begin(int64_t bucket);
uint64_t bucket_access_add(
	uint64_t sum, enum bucket_grant_source source, const struct bucket_grant *grant);
int64_t bucket_access_end(uint64_t sum, struct span block);

/* Whether the sum is right. Like all reads here, it is called within a snapshot or a change,
 * because the parts match the sum only in one state of the catalog. */
int bucket_access_is_right(struct db *db, int64_t bucket, bool *out_is_right, struct error *err);
/* Writes the sum of the present rights, after they were changed. */
int bucket_access_stamp(struct db *db, int64_t bucket, struct error *err);
/* Call it before a change. If the sum is wrong, it drops all grants and the policy, and blocks all
 * public access. */
int bucket_access_settle(struct db *db, int64_t bucket, struct error *err);
/* Finds the first bucket after `after` whose sum is wrong. Returns 1 with its number and name, 0
 * when there is none, -1 on error. */
int bucket_access_next_wrong(struct db *db, int64_t after, struct arena *arena, int64_t *out_bucket,
	struct span *out_name, struct error *err);
/* For the migration that added the sums: writes those of all buckets. */
int bucket_access_stamp_all(struct db *db, struct error *err);

#endif
