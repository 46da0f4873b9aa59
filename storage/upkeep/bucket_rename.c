#include "storage/upkeep/bucket_rename.h"

#include "storage/buckets/account_row.h"
#include "storage/buckets/bucket_change.h"
#include "storage/buckets/bucket_document.h"
#include "storage/buckets/bucket_row.h"
#include "storage/buckets/lifecycle_cache.h"
#include "storage/run_tables/deployment_row.h"
#include "storage/run_tables/run_row.h"

static int bucket_rename_apply(struct call *call, struct db *db, struct error *err);
static void bucket_rename_settle(struct call *call);

static const struct call_kind rename_kind = {
	.stages = {{.apply = bucket_rename_apply}},
	.settle = bucket_rename_settle,
};

struct call *bucket_rename_call(struct store *store, const struct bucket_rename *rename)
{
	struct bucket_change *const change = bucket_change_new(store, &rename_kind, rename->from);
	ASSERT(rename->account.len > 0);
	change->new_name = arena_copy(change->call.arena, rename->to);
	change->account = arena_copy(change->call.arena, rename->account);
	return &change->call;
}

static int bucket_rename_apply(struct call *call, struct db *db, struct error *err)
{
	struct bucket_change *const change = (struct bucket_change *)call;
	int64_t bucket;
	int64_t account;
	if (bucket_row_find(db, change->bucket, &bucket, err) != 0 ||
		bucket_change_check_free(change, db, change->new_name, err) != 0 ||
		bucket_document_row_read(
			db, bucket, BUCKET_LIFECYCLE, call->arena, &change->lifecycle, err) != 0)
		return -1;
	if (account_row_ensure(db, change->account, store_now_ms(call->store), &account, err) !=
			0 ||
		deployment_row_check_move(db, bucket, account, err) != 0 ||
		run_row_note_rename(db, bucket, change->bucket.name, err) != 0)
		return -1;
	return bucket_row_rename(db, bucket, change->new_name, account, err);
}

static void bucket_rename_settle(struct call *call)
{
	const struct bucket_change *const change = (const struct bucket_change *)call;
	struct lifecycle_cache *const cache = store_parts(call->store)->lifecycle_cache;
	if (call->failed)
		return;
	lifecycle_cache_set(cache, change->bucket.name, (struct span){NULL, 0});
	lifecycle_cache_set(cache, change->new_name, change->lifecycle);
}
