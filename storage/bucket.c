#include "storage/bucket.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/account_row.h"
#include "storage/bucket_access.h"
#include "storage/bucket_row.h"
#include "storage/bucket_sweep.h"
#include "storage/bucket_totals.h"
#include "storage/committer.h"
#include "storage/deployment_row.h"
#include "storage/lifecycle_cache.h"
#include "storage/run_row.h"
#include "storage/upload_row.h"
#include "storage/version.h"

enum { CHANGE_ARENA_BYTES = 4 * 1024 * 1024 };

struct bucket_change {
	struct change change; /* first */
	struct store *store;
	struct arena *arena;
	struct span name;
	struct span account;   /* create, rename: of the owner */
	struct span new_name;  /* rename */
	struct span lifecycle; /* rename: the document that goes along */
	struct bucket_edit edit; /* texts in the arena */
	bool too_large;
	void (*done)(void *owner);
	void *owner;
};

static const char *const etag_policies[] = {[ETAG_DEFAULT] = "default", [ETAG_MD5] = "md5", [ETAG_FAST] = "fast"};

const char *etag_policy_name(const enum etag_policy policy)
{
	return (size_t)policy < sizeof(etag_policies) / sizeof(etag_policies[0]) ? etag_policies[policy] : etag_policies[ETAG_DEFAULT];
}

bool etag_policy_parse(const struct span name, enum etag_policy *const out)
{
	for (size_t i = 0; i < sizeof(etag_policies) / sizeof(etag_policies[0]); i++) {
		*out = (enum etag_policy)i;
		if (span_equal_text(name, etag_policies[i]))
			return true;
	}
	return false;
}

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

int bucket_find_id(struct store *const store, const int64_t id, struct arena *const arena, struct bucket *const out, struct error *const err)
{
	struct db *const db = store_reader_take(store, err);
	struct span name;
	if (db == NULL)
		return -1;
	int result = bucket_row_name(db, id, arena, &name, err);
	if (result == 0)
		result = error_set(err, ERROR_NO_BUCKET, "There is no bucket number %lld.", (long long)id);
	else if (result == 1)
		result = bucket_row_read(db, name, arena, out, err);
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

int bucket_totals_find(struct store *const store, const struct bucket *const buckets, const size_t count, struct bucket_totals *const out,
	struct error *const err)
{
	struct db *const db = store_reader_take(store, err);
	int result = db == NULL ? -1 : 0;
	for (size_t i = 0; result == 0 && i < count; i++)
		result = bucket_totals_read(db, buckets[i].id, &out[i], err);
	store_reader_give(store, db);
	return result;
}

int bucket_bytes_of(struct store *const store, const struct span owner, int64_t *const out_bytes, struct error *const err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int result = bucket_totals_sum(db, owner, out_bytes, err);
	store_reader_give(store, db);
	return result;
}

static int write_documents(struct db *const db, const int64_t bucket, const struct bucket_edit *const edit, struct error *const err)
{
	for (size_t i = 0; i < edit->document_count; i++)
		if (bucket_document_row_put(db, bucket, &edit->documents[i], err) != 0)
			return -1;
	return 0;
}

/* Whether others' access to the bucket changes. */
static bool changes_access(const struct bucket_edit *edit)
{
	for (size_t i = 0; i < edit->document_count; i++)
		if (edit->documents[i].kind == BUCKET_PUBLIC_ACCESS)
			return true;
	return edit->replaces_grants != BUCKET_GRANTS_NONE;
}

static int write_access(struct db *db, int64_t bucket, const struct bucket_edit *edit, struct error *err)
{
	if (!changes_access(edit))
		return write_documents(db, bucket, edit, err);
	if (bucket_access_settle(db, bucket, err) != 0)
		return -1;
	if (edit->replaces_grants != BUCKET_GRANTS_NONE
		&& bucket_grant_row_replace(db, bucket, edit->replaces_grants, edit->grants, edit->grant_count, err) != 0)
		return -1;
	return write_documents(db, bucket, edit, err) != 0 ? -1 : bucket_access_stamp(db, bucket, err);
}

static int write_edit(struct bucket_change *const change, struct db *const db, const int64_t bucket, struct error *const err)
{
	const struct bucket_edit *const edit = &change->edit;
	if (change->too_large)
		return error_set(err, ERROR_TOO_LARGE, "The settings are too large for a bucket.");
	if (edit->sets_versioning && bucket_row_set_versioning(db, bucket, edit->versioning, err) != 0)
		return -1;
	if (edit->sets_etag_policy && bucket_row_set_etag_policy(db, bucket, edit->etag_policy, err) != 0)
		return -1;
	return write_access(db, bucket, edit, err);
}

static int apply_edit(struct change *const base, struct db *const db, struct error *const err)
{
	struct bucket_change *const change = (struct bucket_change *)base;
	struct bucket bucket;
	return bucket_row_same(db, change->name, change->edit.bucket_id, &bucket, err) != 0 ? -1 : write_edit(change, db, bucket.id, err);
}

/* 0; bucket_owned, bucket_taken. */
static int check_free(struct bucket_change *const change, struct db *const db, const struct span name, struct error *const err)
{
	struct bucket existing;
	struct error found;
	if (bucket_row_read(db, name, change->arena, &existing, &found) == 0) {
		const bool own = span_equal(existing.owner, change->account);
		return error_set(err, own ? ERROR_BUCKET_OWNED : ERROR_BUCKET_TAKEN, "The bucket '%.*s' exists%s.", (int)name.len,
			(const char *)name.data, own ? " and is yours" : "");
	}
	if (found.kind == ERROR_NO_BUCKET)
		return 0;
	*err = found;
	return -1;
}

static int apply_create(struct change *const base, struct db *const db, struct error *const err)
{
	struct bucket_change *const change = (struct bucket_change *)base;
	const struct clock_source *const clock = store_clock(change->store);
	const int64_t now_ms = clock->wall_ms(clock);
	int64_t account;
	if (check_free(change, db, change->name, err) != 0 || account_row_ensure(db, change->account, now_ms, &account, err) != 0
		|| bucket_row_add(db, change->name, account, now_ms, err) != 0)
		return -1;
	const int64_t bucket = db_last_id(db);
	if (bucket_totals_open(db, bucket, now_ms, err) != 0 || bucket_access_stamp(db, bucket, err) != 0)
		return -1;
	return write_edit(change, db, bucket, err);
}

static int apply_rename(struct change *const base, struct db *const db, struct error *const err)
{
	struct bucket_change *const change = (struct bucket_change *)base;
	const struct clock_source *const clock = store_clock(change->store);
	struct bucket bucket;
	int64_t account;
	if (bucket_row_same(db, change->name, change->edit.bucket_id, &bucket, err) != 0 || check_free(change, db, change->new_name, err) != 0
		|| bucket_document_row_read(db, bucket.id, BUCKET_LIFECYCLE, change->arena, &change->lifecycle, err) != 0)
		return -1;
	if (account_row_ensure(db, change->account, clock->wall_ms(clock), &account, err) != 0
		|| deployment_row_check_move(db, bucket.id, account, err) != 0)
		return -1;
	return bucket_row_rename(db, bucket.id, change->new_name, account, err);
}

static int has_runs(const struct span name, struct error *const err)
{
	return error_set(err, ERROR_BUCKET_HAS_RUNS, "The bucket '%.*s' holds runs; end them first.", (int)name.len, (const char *)name.data);
}

static int remove_row(struct db *const db, const int64_t id, struct error *const err)
{
	if (bucket_document_row_drop_all(db, id, err) != 0 || bucket_grant_row_drop_all(db, id, err) != 0
		|| bucket_totals_drop(db, id, err) != 0)
		return -1;
	return bucket_row_remove(db, id, err);
}

static int apply_drop(struct change *const base, struct db *const db, struct error *const err)
{
	const struct bucket_change *const change = (const struct bucket_change *)base;
	struct bucket bucket;
	bool runs = false;
	if (bucket_row_same(db, change->name, change->edit.bucket_id, &bucket, err) != 0
		|| run_row_any_in_bucket(db, bucket.id, &runs, err) != 0)
		return -1;
	if (runs)
		return has_runs(change->name, err);
	return bucket_sweep_mark(db, bucket.id, err) != 0 ? -1 : remove_row(db, bucket.id, err);
}

static int apply_delete(struct change *const base, struct db *const db, struct error *const err)
{
	struct bucket_change *const change = (struct bucket_change *)base;
	int64_t id;
	bool runs = false;
	bool has_objects = false;
	if (bucket_row_find(db, change->name, &id, err) != 0)
		return -1;
	if (run_row_any_in_bucket(db, id, &runs, err) != 0 || version_any_in_bucket(db, id, &has_objects, err) != 0)
		return -1;
	if (runs)
		return has_runs(change->name, err);
	if (has_objects)
		return error_set(err, ERROR_BUCKET_NOT_EMPTY, "The bucket '%.*s' holds objects.", (int)change->name.len,
			(const char *)change->name.data);
	return upload_row_orphan(db, id, err) != 0 ? -1 : remove_row(db, id, err);
}

/* Before `done`: whoever hears of the change finds the rules in force. */
static void tell_lifecycle(const struct bucket_change *const change)
{
	static const struct span none = {NULL, 0};
	struct lifecycle_cache *const cache = store_lifecycle_cache(change->store);
	if (change->change.apply != apply_edit && change->change.apply != apply_create)
		lifecycle_cache_set(cache, change->name, none);
	if (change->change.apply == apply_rename)
		lifecycle_cache_set(cache, change->new_name, change->lifecycle);
	for (size_t i = 0; i < change->edit.document_count; i++)
		if (change->edit.documents[i].kind == BUCKET_LIFECYCLE)
			lifecycle_cache_set(cache, change->name, change->edit.documents[i].bytes);
}

static void committed(struct change *const base)
{
	struct bucket_change *const change = (struct bucket_change *)base;
	if (!change->change.failed)
		tell_lifecycle(change);
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

static void copy_documents(struct bucket_change *const change, const struct bucket_edit *const edit)
{
	struct bucket_document *const documents = arena_take_array(change->arena, edit->document_count + 1, sizeof(*documents));
	change->edit.documents = documents;
	for (size_t i = 0; documents != NULL && i < edit->document_count; i++) {
		const struct span bytes = edit->documents[i].bytes;
		change->too_large = change->too_large || bytes.len > BUCKET_DOCUMENT_MAX_BYTES;
		documents[i].kind = edit->documents[i].kind;
		documents[i].bytes = arena_copy(change->arena, bytes);
	}
}

static void copy_grants(struct bucket_change *const change, const struct bucket_edit *const edit)
{
	const size_t count = edit->grant_count <= BUCKET_GRANTS_MAX ? edit->grant_count : 0;
	struct bucket_grant *const grants = arena_take_array(change->arena, count + 1, sizeof(*grants));
	change->edit.grants = grants;
	change->too_large = change->too_large || edit->grant_count > BUCKET_GRANTS_MAX;
	for (size_t i = 0; grants != NULL && i < count; i++)
		grants[i] = (struct bucket_grant){.account = arena_copy(change->arena, edit->grants[i].account),
			.prefix = arena_copy(change->arena, edit->grants[i].prefix), .permissions = edit->grants[i].permissions};
}

static void copy_edit(struct bucket_change *const change, const struct bucket_edit *const edit)
{
	change->edit = *edit;
	copy_documents(change, edit);
	copy_grants(change, edit);
	change->too_large = change->too_large || arena_overflowed(change->arena);
}

struct bucket_change *bucket_create_start(struct store *const store, const struct span name, const struct span account,
	const struct bucket_edit *const edit, void (*const done)(void *owner), void *const owner)
{
	struct bucket_change *const change = change_new(store, name, done, owner);
	change->account = arena_copy(change->arena, account);
	if (edit != NULL)
		copy_edit(change, edit);
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

struct bucket_change *bucket_drop_start(struct store *const store, const struct span name, const int64_t bucket_id,
	void (*const done)(void *owner), void *const owner)
{
	struct bucket_change *const change = change_new(store, name, done, owner);
	change->edit.bucket_id = bucket_id;
	change->change.apply = apply_drop;
	committer_submit(store_committer(store), &change->change);
	return change;
}

struct bucket_change *bucket_rename_start(struct store *const store, const struct bucket_rename *const rename,
	void (*const done)(void *owner), void *const owner)
{
	struct bucket_change *const change = change_new(store, rename->from, done, owner);
	change->new_name = arena_copy(change->arena, rename->to);
	change->account = arena_copy(change->arena, rename->account);
	change->edit.bucket_id = rename->bucket_id;
	change->change.apply = apply_rename;
	committer_submit(store_committer(store), &change->change);
	return change;
}

struct bucket_change *bucket_edit_start(struct store *const store, const struct span name, const struct bucket_edit *const edit,
	void (*const done)(void *owner), void *const owner)
{
	struct bucket_change *const change = change_new(store, name, done, owner);
	copy_edit(change, edit);
	change->change.apply = apply_edit;
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
