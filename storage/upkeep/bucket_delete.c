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

static int bucket_delete_apply(struct call *call, struct db *db, struct error *err);
static int find_without_runs(
	struct db *db, struct bucket_ref ref, int64_t *out_id, struct error *err);
static int refuse_runs(struct span name, struct error *err);
static int remove_row(struct db *db, int64_t id, struct error *err);
static void bucket_delete_settle(struct call *call);
static int bucket_drop_apply(struct call *call, struct db *db, struct error *err);

static const struct call_kind delete_kind = {
	.stages = {{.apply = bucket_delete_apply}},
	.settle = bucket_delete_settle,
};

static const struct call_kind drop_kind = {
	.stages = {{.apply = bucket_drop_apply}},
	.settle = bucket_delete_settle,
};

struct call *bucket_delete_call(struct store *store, struct bucket_ref ref)
{
	return &bucket_change_new(store, &delete_kind, ref)->call;
}

struct call *bucket_drop_call(struct store *store, struct bucket_ref ref)
{
	return &bucket_change_new(store, &drop_kind, ref)->call;
}

static int bucket_delete_apply(struct call *call, struct db *db, struct error *err)
{
	const struct bucket_change *const change = (const struct bucket_change *)call;
	const struct span name = change->bucket.name;
	int64_t id;
	bool has_objects = false;
	if (find_without_runs(db, change->bucket, &id, err) != 0 ||
		version_any_in_bucket(db, id, &has_objects, err) != 0)
		return -1;
	if (has_objects)
		return error_set(err, ERROR_BUCKET_NOT_EMPTY, "The bucket '%.*s' holds objects.",
			(int)name.len, (const char *)name.data);
	return upload_row_orphan(db, id, err) != 0 ? -1 : remove_row(db, id, err);
}

/* Finds the id of a bucket; bucket_has_runs when it has any run. */
static int find_without_runs(
	struct db *db, struct bucket_ref ref, int64_t *out_id, struct error *err)
{
	bool runs = false;
	if (bucket_row_find(db, ref, out_id, err) != 0 ||
		run_row_any_in_bucket(db, *out_id, &runs, err) != 0)
		return -1;
	return runs ? refuse_runs(ref.name, err) : 0;
}

static int refuse_runs(struct span name, struct error *err)
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

static void bucket_delete_settle(struct call *call)
{
	const struct bucket_change *const change = (const struct bucket_change *)call;
	if (!call->failed)
		lifecycle_cache_set(store_parts(call->store)->lifecycle_cache, change->bucket.name,
			(struct span){NULL, 0});
}

static int bucket_drop_apply(struct call *call, struct db *db, struct error *err)
{
	const struct bucket_change *const change = (const struct bucket_change *)call;
	int64_t id;
	if (find_without_runs(db, change->bucket, &id, err) != 0 ||
		bucket_sweep_mark(db, id, err) != 0)
		return -1;
	return remove_row(db, id, err);
}
