#include "storage/upkeep/bucket_delete.h"

#include "storage/buckets/bucket_change.h"
#include "storage/buckets/bucket_document.h"
#include "storage/buckets/bucket_row.h"
#include "storage/buckets/bucket_totals.h"
#include "storage/buckets/lifecycle_cache.h"
#include "storage/run_tables/run_row.h"
#include "storage/uploads/upload_row.h"
#include "storage/versions/bucket_sweep.h"
#include "storage/versions/version.h"

static void forget_lifecycle(struct bucket_change *change)
{
	lifecycle_cache_set(
		store_parts(change->store)->lifecycle_cache, change->name, (struct span){NULL, 0});
}

static int has_runs(struct span name, struct error *err)
{
	return error_set(err, ERROR_BUCKET_HAS_RUNS,
		"The bucket '%.*s' holds runs; end them first.", (int)name.len,
		(const char *)name.data);
}

static int remove_row(struct db *db, int64_t id, struct error *err)
{
	if (bucket_document_row_drop_all(db, id, err) != 0 ||
		bucket_grant_row_drop_all(db, id, err) != 0 || bucket_totals_drop(db, id, err) != 0)
		return -1;
	return bucket_row_remove(db, id, err);
}

static int apply_drop(struct change *base, struct db *db, struct error *err)
{
	const struct bucket_change *const change = (const struct bucket_change *)base;
	struct bucket bucket;
	bool runs = false;
	if (bucket_row_same(db, change->name, change->edit.bucket_id, &bucket, err) != 0 ||
		run_row_any_in_bucket(db, bucket.id, &runs, err) != 0)
		return -1;
	if (runs)
		return has_runs(change->name, err);
	return bucket_sweep_mark(db, bucket.id, err) != 0 ? -1 : remove_row(db, bucket.id, err);
}

static int apply_delete(struct change *base, struct db *db, struct error *err)
{
	struct bucket_change *const change = (struct bucket_change *)base;
	int64_t id;
	bool runs = false;
	bool has_objects = false;
	if (bucket_row_find(db, change->name, &id, err) != 0)
		return -1;
	if (run_row_any_in_bucket(db, id, &runs, err) != 0 ||
		version_any_in_bucket(db, id, &has_objects, err) != 0)
		return -1;
	if (runs)
		return has_runs(change->name, err);
	if (has_objects)
		return error_set(err, ERROR_BUCKET_NOT_EMPTY, "The bucket '%.*s' holds objects.",
			(int)change->name.len, (const char *)change->name.data);
	return upload_row_orphan(db, id, err) != 0 ? -1 : remove_row(db, id, err);
}

struct bucket_change *bucket_delete_start(
	struct store *store, struct span name, void (*done)(void *owner), void *owner)
{
	struct bucket_change *const change = bucket_change_new(store, name, done, owner);
	change->settle = forget_lifecycle;
	bucket_change_submit(change, apply_delete);
	return change;
}

struct bucket_change *bucket_drop_start(struct store *store, struct span name, int64_t bucket_id,
	void (*done)(void *owner), void *owner)
{
	struct bucket_change *const change = bucket_change_new(store, name, done, owner);
	change->edit.bucket_id = bucket_id;
	change->settle = forget_lifecycle;
	bucket_change_submit(change, apply_drop);
	return change;
}
