/* A list is cut into slices, each a change, that go to the committer together; the one that ends
 * last ends the call. Only the committer writes items until then, and only the caller reads them
 * after that, so no lock is needed. Slices keep a long list from delaying other changes. */
#include "storage/objects/object_delete.h"

#include <stdatomic.h>
#include <string.h>

#include "base/random.h"
#include "storage/buckets/bucket_row.h"
#include "storage/core/committer.h"
#include "storage/objects/object_row.h"
#include "storage/run_tables/server_key.h"

enum { DELETE_CHANGE_ITEMS = 100, BUCKET_TEXT_MAX_BYTES = 1024, DELETE_ARENA_BYTES = 64 * 1024 };

struct delete_slice {
	struct change change; /* must be the first member */
	struct object_delete *whole;
	struct object_delete_item *items;
	size_t count;
};
struct object_delete {
	struct call call; /* its arena has the bucket's name and the slices */
	struct bucket_ref bucket;
	struct delete_slice *slices;
	size_t slice_count;
	atomic_size_t under_way;
};

static void object_delete_submit(struct call *call);
static void cut_slices(struct object_delete *delete, const struct object_delete_params *params);
static int object_delete_apply(struct change *change, struct db *db, struct error *err);
static void set_named_version(struct object_delete_item *item);
static int delete_item(struct object_delete *delete, struct db *db, const struct bucket *bucket,
	struct object_delete_item *item, struct error *err);
static bool is_conditional(const struct object_conditions *conditions);
static int push_marker(struct object_delete *delete, struct db *db, const struct bucket *bucket,
	const struct version *current, struct object_delete_item *item, struct error *err);
static void set_version(struct object_delete_item *item, const struct version *version);
static void object_delete_committed(struct change *change);
static void delete_end(struct object_delete *delete);

static const struct call_kind delete_kind = {
	.stages = {{.begin = object_delete_submit}},
};

struct call *object_delete_call(struct store *store, const struct object_delete_params *params)
{
	ASSERT(params->count >= 1 && params->count <= OBJECT_DELETE_MAX);
	struct object_delete *const delete =
		call_new(sizeof(*delete), &delete_kind, store, DELETE_ARENA_BYTES);
	struct arena *const arena = delete->call.arena;
	struct bucket_ref bucket = params->bucket;
	bucket.name = span_slice(bucket.name, 0, BUCKET_TEXT_MAX_BYTES);
	delete->bucket = bucket_ref_copy(bucket, arena);
	delete->slice_count = (params->count + DELETE_CHANGE_ITEMS - 1) / DELETE_CHANGE_ITEMS;
	delete->slices = arena_take_array(arena, delete->slice_count, sizeof(*delete->slices));
	ASSERT(!arena_overflowed(arena));
	atomic_init(&delete->under_way, delete->slice_count);
	cut_slices(delete, params);
	return &delete->call;
}

/* The call may be freed as soon as the last slice is submitted. */
static void object_delete_submit(struct call *call)
{
	struct object_delete *const delete = (struct object_delete *)call;
	struct committer *const committer = store_committer(call->store);
	const size_t count = delete->slice_count;
	for (size_t i = 0; i < count; i++)
		committer_submit(committer, &delete->slices[i].change);
}

static void cut_slices(struct object_delete *delete, const struct object_delete_params *params)
{
	for (size_t i = 0; i < delete->slice_count; i++) {
		const size_t from = i * DELETE_CHANGE_ITEMS;
		const size_t left = params->count - from;
		delete->slices[i] = (struct delete_slice){
			.change = {.apply = object_delete_apply, .done = object_delete_committed},
			.whole = delete,
			.items = params->items + from,
			.count = left < DELETE_CHANGE_ITEMS ? left : DELETE_CHANGE_ITEMS,
		};
	}
}

static int object_delete_apply(struct change *change, struct db *db, struct error *err)
{
	struct delete_slice *const slice = (struct delete_slice *)change;
	struct bucket bucket;
	if (bucket_row_settings(db, slice->whole->bucket, &bucket, err) != 0)
		return -1;
	for (size_t i = 0; i < slice->count; i++) {
		struct object_delete_item *const item = &slice->items[i];
		item->error = (struct error){.kind = ERROR_NONE};
		item->is_marker = false;
		item->version[0] = '\0';
		if (item->ref.kind != VERSION_REF_CURRENT)
			set_named_version(item);
		if (delete_item(slice->whole, db, &bucket, item, err) != 0)
			return -1;
		item->has_version = item->version[0] != '\0' &&
			(item->ref.kind != VERSION_REF_CURRENT ||
				bucket.versioning != BUCKET_UNVERSIONED);
	}
	return 0;
}

static void set_named_version(struct object_delete_item *item)
{
	struct object object = {.has_id = item->ref.kind == VERSION_REF_ID};
	if (item->ref.kind == VERSION_REF_FOREIGN)
		return; /* no version has such an id */
	memcpy(object.version, item->ref.id, VERSION_ID_BYTES);
	object_version_text(&object, item->version);
}

/* Deleting a version that does not exist succeeds, whatever the conditions are. */
static int delete_item(struct object_delete *delete, struct db *db, const struct bucket *bucket,
	struct object_delete_item *item, struct error *err)
{
	struct version version;
	const bool is_named = item->ref.kind != VERSION_REF_CURRENT;
	if (server_key_guard(db, bucket->id, item->key, err) != 0) {
		item->error = *err;
		return err->kind == ERROR_DENIED ? 0 : -1;
	}
	const struct object_place place = {.bucket = bucket->id, .key = item->key};
	const int found = version_find_ref(db, place, &item->ref, NULL, &version, err);
	if (found < 0)
		return -1;
	if (found == 1 &&
		object_conditions_check_delete(&item->conditions, &version, &item->error) != 0)
		return 0;
	if (!is_named && bucket->versioning != BUCKET_UNVERSIONED)
		return found == 0 && is_conditional(&item->conditions)
			? 0
			: push_marker(delete, db, bucket, found == 1 ? &version : NULL, item, err);
	if (found == 0)
		return 0;
	set_version(item, &version);
	return version_remove(db, &version, store_now_ms(delete->call.store), err);
}

static bool is_conditional(const struct object_conditions *conditions)
{
	return conditions->if_match.len > 0 || conditions->if_none_match.len > 0 ||
		conditions->has_size || conditions->has_modified;
}

static int push_marker(struct object_delete *delete, struct db *db, const struct bucket *bucket,
	const struct version *current, struct object_delete_item *item, struct error *err)
{
	struct version marker = {.bucket = bucket->id,
		.key = item->key,
		.is_marker = true,
		.kind = VERSION_INLINE,
		.modified_ms = store_now_ms(delete->call.store)};
	random_bytes(marker.id, VERSION_ID_BYTES);
	if (version_push(db, bucket->versioning, current, &marker, err) != 0)
		return -1;
	set_version(item, &marker);
	return 0;
}

static void set_version(struct object_delete_item *item, const struct version *version)
{
	struct object object = {.has_id = version->has_id};
	memcpy(object.version, version->id, VERSION_ID_BYTES);
	object_version_text(&object, item->version);
	item->is_marker = version->is_marker;
}

static void object_delete_committed(struct change *change)
{
	struct delete_slice *const slice = (struct delete_slice *)change;
	for (size_t i = 0; change->failed && i < slice->count; i++)
		slice->items[i].error = change->error;
	const size_t under_way = atomic_fetch_sub(&slice->whole->under_way, 1);
	ASSERT(under_way > 0);
	if (under_way == 1)
		delete_end(slice->whole);
}

/* Ends the call, with the first failure in the order of the list. */
static void delete_end(struct object_delete *delete)
{
	const struct error *failure = NULL;
	for (size_t i = 0; failure == NULL && i < delete->slice_count; i++)
		if (delete->slices[i].change.failed)
			failure = &delete->slices[i].change.error;
	call_resume(&delete->call, failure);
}
