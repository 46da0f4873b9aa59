#include "storage/upkeep/bucket_rename.h"

#include "storage/buckets/account_row.h"
#include "storage/buckets/bucket_change.h"
#include "storage/buckets/bucket_document.h"
#include "storage/buckets/bucket_row.h"
#include "storage/buckets/lifecycle_cache.h"
#include "storage/run_tables/deployment_row.h"

static void move_lifecycle(struct bucket_change *change)
{
	struct lifecycle_cache *const cache = store_parts(change->store)->lifecycle_cache;
	lifecycle_cache_set(cache, change->name, (struct span){NULL, 0});
	lifecycle_cache_set(cache, change->new_name, change->lifecycle);
}

static int apply_rename(struct change *base, struct db *db, struct error *err)
{
	struct bucket_change *const change = (struct bucket_change *)base;
	const struct clock_source *const clock = store_clock(change->store);
	struct bucket bucket;
	int64_t account;
	if (bucket_row_same(db, change->name, change->edit.bucket_id, &bucket, err) != 0 ||
		bucket_change_check_free(change, db, change->new_name, err) != 0 ||
		bucket_document_row_read(db, bucket.id, BUCKET_LIFECYCLE, change->arena,
			&change->lifecycle, err) != 0)
		return -1;
	if (account_row_ensure(db, change->account, clock->wall_ms(clock), &account, err) != 0 ||
		deployment_row_check_move(db, bucket.id, account, err) != 0)
		return -1;
	return bucket_row_rename(db, bucket.id, change->new_name, account, err);
}

struct bucket_change *bucket_rename_start(struct store *store, const struct bucket_rename *rename,
	void (*done)(void *owner), void *owner)
{
	struct bucket_change *const change = bucket_change_new(store, rename->from, done, owner);
	change->new_name = arena_copy(change->arena, rename->to);
	change->account = arena_copy(change->arena, rename->account);
	change->edit.bucket_id = rename->bucket_id;
	change->settle = move_lifecycle;
	bucket_change_submit(change, apply_rename);
	return change;
}
