#include "storage/bucket.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/account_row.h"
#include "storage/bucket_row.h"
#include "storage/committer.h"
#include "storage/run_row.h"
#include "storage/upload_row.h"
#include "storage/version.h"

enum { CHANGE_ARENA_BYTES = 16 * 1024 };

struct bucket_change {
	struct change change; /* first */
	struct store *store;
	struct arena *arena;
	struct span name;
	struct span account;
	void (*done)(void *owner);
	void *owner;
};

int bucket_find(struct store *const store, const struct span name, struct arena *const arena, struct bucket *const out,
	struct error *const err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int result = bucket_row_read(db, name, arena, out, err);
	store_reader_give(store, db);
	return result;
}

int bucket_list(struct store *const store, const struct span owner, const struct span prefix, const struct span after, const size_t limit,
	struct arena *const arena, struct bucket **const out, size_t *const out_count, struct error *const err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const struct bucket_row_scan scan = {.owner = owner, .prefix = prefix, .after = after, .limit = limit};
	const int result = bucket_row_list(db, &scan, arena, out, out_count, err);
	store_reader_give(store, db);
	return result;
}

static int apply_create(struct change *const base, struct db *const db, struct error *const err)
{
	struct bucket_change *const change = (struct bucket_change *)base;
	struct bucket existing;
	struct error found;
	if (bucket_row_read(db, change->name, change->arena, &existing, &found) == 0) {
		const bool own = span_equal(existing.owner, change->account);
		return error_set(err, own ? ERROR_BUCKET_OWNED : ERROR_BUCKET_TAKEN, "The bucket '%.*s' exists%s.", (int)change->name.len,
			(const char *)change->name.data, own ? " and is yours" : "");
	}
	if (found.kind != ERROR_NO_BUCKET) {
		*err = found;
		return -1;
	}
	const struct clock_source *const clock = store_clock(change->store);
	const int64_t now_ms = clock->wall_ms(clock);
	int64_t account;
	if (account_row_ensure(db, change->account, now_ms, &account, err) != 0)
		return -1;
	return bucket_row_add(db, change->name, account, now_ms, err);
}

static int apply_delete(struct change *const base, struct db *const db, struct error *const err)
{
	struct bucket_change *const change = (struct bucket_change *)base;
	int64_t id;
	bool has_runs = false;
	bool has_objects = false;
	if (bucket_row_find(db, change->name, &id, err) != 0)
		return -1;
	if (run_row_any_in_bucket(db, id, &has_runs, err) != 0 || version_any_in_bucket(db, id, &has_objects, err) != 0)
		return -1;
	if (has_runs)
		return error_set(err, ERROR_BUCKET_HAS_RUNS, "The bucket '%.*s' holds runs; end them first.", (int)change->name.len,
			(const char *)change->name.data);
	if (has_objects)
		return error_set(err, ERROR_BUCKET_NOT_EMPTY, "The bucket '%.*s' holds objects.", (int)change->name.len,
			(const char *)change->name.data);
	if (upload_row_orphan(db, id, err) != 0)
		return -1;
	return bucket_row_remove(db, id, err);
}

static void committed(struct change *const base)
{
	struct bucket_change *const change = (struct bucket_change *)base;
	change->done(change->owner);
}

static struct bucket_change *change_new(struct store *const store, const struct span name, void (*const done)(void *owner),
	void *const owner)
{
	struct bucket_change *const change = memory_new(sizeof(*change));
	change->store = store;
	change->arena = arena_new(CHANGE_ARENA_BYTES);
	change->name = arena_copy(change->arena, span_slice(name, 0, 1024));
	change->done = done;
	change->owner = owner;
	change->change.done = committed;
	return change;
}

struct bucket_change *bucket_create_start(struct store *const store, const struct span name, const struct span account,
	void (*const done)(void *owner), void *const owner)
{
	struct bucket_change *const change = change_new(store, name, done, owner);
	change->account = arena_copy(change->arena, account);
	change->change.apply = apply_create;
	committer_submit(store_committer(store), &change->change);
	return change;
}

struct bucket_change *bucket_delete_start(struct store *const store, const struct span name, void (*const done)(void *owner),
	void *const owner)
{
	struct bucket_change *const change = change_new(store, name, done, owner);
	change->change.apply = apply_delete;
	committer_submit(store_committer(store), &change->change);
	return change;
}

int bucket_change_outcome(struct bucket_change *const change, struct error *const err)
{
	if (!change->change.failed)
		return 0;
	*err = change->change.error;
	return -1;
}

void bucket_change_free(struct bucket_change *const change)
{
	if (change == NULL)
		return;
	arena_free(change->arena);
	free(change);
}
