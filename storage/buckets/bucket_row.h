/* The table `buckets`. Internal to storage. */
#ifndef STORAGE_BUCKETS_BUCKET_ROW_H
#define STORAGE_BUCKETS_BUCKET_ROW_H

#include "storage/buckets/bucket.h"
#include "storage/db/db.h"

/* Finds the name of a bucket. Returns 1, 0 when absent, -1 on error. */
int bucket_row_name(
	struct db *db, int64_t id, struct arena *arena, struct span *out_name, struct error *err);
/* Finds the id of a bucket. no_bucket. */
int bucket_row_find(struct db *db, struct bucket_ref ref, int64_t *out_id, struct error *err);
/* The same with the settings that a write depends on: sets only id, versioning and etag_policy. */
int bucket_row_settings(
	struct db *db, struct bucket_ref ref, struct bucket *out, struct error *err);
/* Reads the whole row. no_bucket. */
int bucket_row_read(struct db *db, struct bucket_ref ref, struct arena *arena, struct bucket *out,
	struct error *err);
int bucket_row_list(struct db *db, const struct bucket_list_params *params, struct arena *arena,
	struct bucket **out, size_t *out_count, struct error *err);
/* The number of buckets of an account, or of all when `owner` is empty. */
int bucket_row_count(struct db *db, struct span owner, uint64_t *out, struct error *err);
int bucket_row_add(struct db *db, struct span name, int64_t account, int64_t now_ms,
	int64_t *out_id, struct error *err);
/* no_bucket */
int bucket_row_versioning(
	struct db *db, int64_t id, enum bucket_versioning *out, struct error *err);
int bucket_row_set_versioning(
	struct db *db, int64_t id, enum bucket_versioning versioning, struct error *err);
int bucket_row_set_etag_policy(
	struct db *db, int64_t id, enum etag_policy policy, struct error *err);
/* exists when the name is in use. */
int bucket_row_rename(
	struct db *db, int64_t id, struct span name, int64_t account, struct error *err);
int bucket_row_remove(struct db *db, int64_t id, struct error *err);

#endif
