/* Reads take a reader of the store. A creation or an edit is a call of one stage: it copies the
 * request into its arena, judges the name on the committer, because another change may have come
 * before, and writes the settings. Changed rights are settled before and summed after
 * (bucket_access.h). The cache of lifecycle rules follows the commit before the caller learns of
 * it. */
#include "storage/buckets/bucket.h"

#include "storage/buckets/account_row.h"
#include "storage/buckets/bucket_access.h"
#include "storage/buckets/bucket_change.h"
#include "storage/buckets/bucket_row.h"
#include "storage/buckets/bucket_totals.h"
#include "storage/buckets/lifecycle_cache.h"

static const char *const etag_policies[] = {
	[ETAG_DEFAULT] = "default", [ETAG_MD5] = "md5", [ETAG_FAST] = "fast"};

static const char too_large[] =
	"The settings of the bucket are too large: a document may have 1 MiB, and a bucket 256 grants.";
_Static_assert(BUCKET_DOCUMENT_MAX_BYTES == 1024 * 1024 && BUCKET_GRANTS_MAX == 256,
	"the message names both");

static int bucket_apply_create(struct call *call, struct db *db, struct error *err);
static int write_edit(
	struct bucket_change *change, struct db *db, int64_t bucket, struct error *err);
static int write_access(
	struct db *db, int64_t bucket, const struct bucket_edit *edit, struct error *err);
static bool changes_access(const struct bucket_edit *edit);
static int write_documents(
	struct db *db, int64_t bucket, const struct bucket_edit *edit, struct error *err);
static void bucket_put_lifecycle(struct call *call);
static void copy_edit(struct bucket_change *change, const struct bucket_edit *edit);
static void copy_documents(struct bucket_change *change, const struct bucket_edit *edit);
static void copy_grants(struct bucket_change *change, const struct bucket_edit *edit);
static int bucket_apply_edit(struct call *call, struct db *db, struct error *err);

static const struct call_kind create_kind = {
	.stages = {{.apply = bucket_apply_create}},
	.settle = bucket_put_lifecycle,
	.too_large = too_large,
};

static const struct call_kind edit_kind = {
	.stages = {{.apply = bucket_apply_edit}},
	.settle = bucket_put_lifecycle,
	.too_large = too_large,
};

const char *bucket_versioning_word(enum bucket_versioning versioning)
{
	static const char *const names[] = {[BUCKET_UNVERSIONED] = "never",
		[BUCKET_VERSIONED] = "enabled",
		[BUCKET_SUSPENDED] = "suspended"};
	return (size_t)versioning < sizeof(names) / sizeof(names[0]) ? names[versioning]
								     : names[BUCKET_UNVERSIONED];
}

const char *etag_policy_name(enum etag_policy policy)
{
	return (size_t)policy < sizeof(etag_policies) / sizeof(etag_policies[0])
		? etag_policies[policy]
		: etag_policies[ETAG_DEFAULT];
}

bool etag_policy_parse(struct span name, enum etag_policy *out)
{
	for (size_t i = 0; i < sizeof(etag_policies) / sizeof(etag_policies[0]); i++) {
		*out = (enum etag_policy)i;
		if (span_equal_text(name, etag_policies[i]))
			return true;
	}
	return false;
}

int bucket_find(struct store *store, struct bucket_ref ref, struct arena *arena, struct bucket *out,
	struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int result = bucket_row_read(db, ref, arena, out, err);
	store_reader_give(store, db);
	return result;
}

int bucket_find_id(
	struct store *store, int64_t id, struct arena *arena, struct bucket *out, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	struct span name;
	if (db == NULL)
		return -1;
	int result = bucket_row_name(db, id, arena, &name, err);
	if (result == 0)
		result = error_set(
			err, ERROR_NO_BUCKET, "There is no bucket number %lld.", (long long)id);
	else if (result == 1)
		result = bucket_row_read(db, (struct bucket_ref){name, id}, arena, out, err);
	store_reader_give(store, db);
	return result;
}

int bucket_list(struct store *store, const struct bucket_list_params *params, struct arena *arena,
	struct bucket **out, size_t *out_count, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int result = bucket_row_list(db, params, arena, out, out_count, err);
	store_reader_give(store, db);
	return result;
}

int bucket_totals_find(struct store *store, const struct bucket *buckets, size_t count,
	struct bucket_totals *out, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	int result = db == NULL ? -1 : 0;
	for (size_t i = 0; result == 0 && i < count; i++)
		result = bucket_totals_read(db, buckets[i].id, &out[i], err);
	store_reader_give(store, db);
	return result;
}

int bucket_bytes_of(struct store *store, struct span owner, int64_t *out_bytes, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int result = bucket_totals_sum(db, owner, out_bytes, err);
	store_reader_give(store, db);
	return result;
}

struct call *bucket_create_call(
	struct store *store, struct span name, struct span account, const struct bucket_edit *edit)
{
	struct bucket_change *const change =
		bucket_change_new(store, &create_kind, bucket_named(name));
	change->account = arena_copy(change->call.arena, account);
	if (edit != NULL)
		copy_edit(change, edit);
	return &change->call;
}

struct call *bucket_edit_call(
	struct store *store, struct bucket_ref ref, const struct bucket_edit *edit)
{
	struct bucket_change *const change = bucket_change_new(store, &edit_kind, ref);
	copy_edit(change, edit);
	return &change->call;
}

static int bucket_apply_create(struct call *call, struct db *db, struct error *err)
{
	struct bucket_change *const change = (struct bucket_change *)call;
	const int64_t now_ms = store_now_ms(call->store);
	const struct span name = change->bucket.name;
	int64_t account;
	int64_t bucket;
	if (bucket_change_check_free(change, db, name, err) != 0 ||
		account_row_ensure(db, change->account, now_ms, &account, err) != 0 ||
		bucket_row_add(db, name, account, now_ms, &bucket, err) != 0 ||
		bucket_totals_open(db, bucket, now_ms, err) != 0 ||
		bucket_access_stamp(db, bucket, err) != 0)
		return -1;
	return write_edit(change, db, bucket, err);
}

static int write_edit(
	struct bucket_change *change, struct db *db, int64_t bucket, struct error *err)
{
	const struct bucket_edit *const edit = &change->edit;
	ASSERT(edit->document_count == 0 || edit->documents != NULL);
	ASSERT(edit->grant_count == 0 || edit->grants != NULL);
	if (change->too_large)
		return error_set(err, ERROR_TOO_LARGE, "%s", too_large);
	if (edit->sets_versioning &&
		bucket_row_set_versioning(db, bucket, edit->versioning, err) != 0)
		return -1;
	if (edit->sets_etag_policy &&
		bucket_row_set_etag_policy(db, bucket, edit->etag_policy, err) != 0)
		return -1;
	return write_access(db, bucket, edit, err);
}

static int write_access(
	struct db *db, int64_t bucket, const struct bucket_edit *edit, struct error *err)
{
	if (!changes_access(edit))
		return write_documents(db, bucket, edit, err);
	if (bucket_access_settle(db, bucket, err) != 0)
		return -1;
	if (edit->replaces_grants != BUCKET_GRANTS_NONE &&
		bucket_grant_row_replace(db, bucket, edit->replaces_grants, edit->grants,
			edit->grant_count, err) != 0)
		return -1;
	return write_documents(db, bucket, edit, err) != 0 ? -1
							   : bucket_access_stamp(db, bucket, err);
}

/* Whether the edit changes what the bucket allows to others. */
static bool changes_access(const struct bucket_edit *edit)
{
	for (size_t i = 0; i < edit->document_count; i++)
		if (edit->documents[i].kind == BUCKET_PUBLIC_ACCESS)
			return true;
	return edit->replaces_grants != BUCKET_GRANTS_NONE;
}

static int write_documents(
	struct db *db, int64_t bucket, const struct bucket_edit *edit, struct error *err)
{
	for (size_t i = 0; i < edit->document_count; i++)
		if (bucket_document_row_put(db, bucket, &edit->documents[i], err) != 0)
			return -1;
	return 0;
}

/* Before the wake, so that the new rules are in force when the caller learns of the change. */
static void bucket_put_lifecycle(struct call *call)
{
	const struct bucket_change *const change = (const struct bucket_change *)call;
	for (size_t i = 0; !call->failed && i < change->edit.document_count; i++)
		if (change->edit.documents[i].kind == BUCKET_LIFECYCLE)
			lifecycle_cache_set(store_parts(call->store)->lifecycle_cache,
				change->bucket.name, change->edit.documents[i].bytes);
}

static void copy_edit(struct bucket_change *change, const struct bucket_edit *edit)
{
	change->edit = *edit;
	copy_documents(change, edit);
	copy_grants(change, edit);
}

static void copy_documents(struct bucket_change *change, const struct bucket_edit *edit)
{
	struct bucket_document *const documents =
		arena_take_array(change->call.arena, edit->document_count + 1, sizeof(*documents));
	change->edit.documents = documents;
	for (size_t i = 0; documents != NULL && i < edit->document_count; i++) {
		const struct span bytes = edit->documents[i].bytes;
		change->too_large = change->too_large || bytes.len > BUCKET_DOCUMENT_MAX_BYTES;
		documents[i].kind = edit->documents[i].kind;
		documents[i].bytes = arena_copy(change->call.arena, bytes);
	}
}

static void copy_grants(struct bucket_change *change, const struct bucket_edit *edit)
{
	const size_t count = edit->grant_count <= BUCKET_GRANTS_MAX ? edit->grant_count : 0;
	struct bucket_grant *const grants =
		arena_take_array(change->call.arena, count + 1, sizeof(*grants));
	change->edit.grants = grants;
	change->too_large = change->too_large || edit->grant_count > BUCKET_GRANTS_MAX;
	for (size_t i = 0; grants != NULL && i < count; i++)
		grants[i] = (struct bucket_grant){
			.account = arena_copy(change->call.arena, edit->grants[i].account),
			.prefix = arena_copy(change->call.arena, edit->grants[i].prefix),
			.permissions = edit->grants[i].permissions};
}

static int bucket_apply_edit(struct call *call, struct db *db, struct error *err)
{
	struct bucket_change *const change = (struct bucket_change *)call;
	int64_t bucket;
	return bucket_row_find(db, change->bucket, &bucket, err) != 0
		? -1
		: write_edit(change, db, bucket, err);
}
