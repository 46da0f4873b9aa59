/* A list is cut into changes that go to the committer together; the one that ends last reports.
 * Items are written only by the committer, and read by the caller only after that report. */
#include "storage/objects/object_delete.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/memory.h"
#include "base/random.h"
#include "storage/buckets/bucket_row.h"
#include "storage/core/committer.h"
#include "storage/objects/object_row.h"
#include "storage/run_tables/server_key.h"

enum { DELETE_CHANGE_ITEMS = 100, BUCKET_TEXT_MAX_BYTES = 1024, DELETE_ARENA_BYTES = 64 * 1024 };

struct delete_slice {
	struct change change; /* first */
	struct object_delete *whole;
	struct object_delete_item *items;
	size_t count;
};
struct object_delete {
	struct store *store;
	struct arena *arena; /* the bucket's name, the slices */
	struct span bucket;
	int64_t bucket_id;
	struct delete_slice *slices;
	size_t slice_count;
	atomic_size_t under_way;
	void (*done)(void *owner);
	void *owner;
};

static void tell_version(struct object_delete_item *item, const struct version *version)
{
	struct object object = {.has_id = version->has_id};
	memcpy(object.version, version->id, VERSION_ID_BYTES);
	object_version_text(&object, item->version);
	item->is_marker = version->is_marker;
}

static int push_marker(struct object_delete *delete, struct db *db, const struct bucket *bucket,
	const struct version *current, struct object_delete_item *item, struct error *err)
{
	const struct clock_source *const clock = store_clock(delete->store);
	struct version marker = {.bucket = bucket->id,
		.key = item->key,
		.is_marker = true,
		.kind = VERSION_INLINE,
		.modified_ms = clock->wall_ms(clock)};
	random_bytes(marker.id, VERSION_ID_BYTES);
	if (version_push(db, bucket->versioning, current, &marker, err) != 0)
		return -1;
	tell_version(item, &marker);
	return 0;
}

static bool is_conditional(const struct object_conditions *conditions)
{
	return conditions->if_match.len > 0 || conditions->if_none_match.len > 0 ||
		conditions->has_size || conditions->has_modified;
}

/* Deleting nothing succeeds, whatever the conditions say. */
static int delete_item(struct object_delete *delete, struct db *db, const struct bucket *bucket,
	struct object_delete_item *item, struct error *err)
{
	struct version version;
	const bool is_named = item->ref.kind != VERSION_REF_CURRENT;
	if (server_key_guard(db, bucket->id, item->key, err) != 0) {
		item->error = *err;
		return err->kind == ERROR_DENIED ? 0 : -1;
	}
	const int found =
		version_find_ref(db, bucket->id, item->key, &item->ref, NULL, &version, err);
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
	tell_version(item, &version);
	return version_remove(
		db, &version, store_clock(delete->store)->wall_ms(store_clock(delete->store)), err);
}

static void name_version(struct object_delete_item *item)
{
	struct object object = {.has_id = item->ref.kind == VERSION_REF_ID};
	if (item->ref.kind == VERSION_REF_FOREIGN)
		return; /* no version's */
	memcpy(object.version, item->ref.id, VERSION_ID_BYTES);
	object_version_text(&object, item->version);
}

static int apply(struct change *change, struct db *db, struct error *err)
{
	struct delete_slice *const slice = (struct delete_slice *)change;
	struct bucket bucket;
	if (bucket_row_same(db, slice->whole->bucket, slice->whole->bucket_id, &bucket, err) != 0)
		return -1;
	for (size_t i = 0; i < slice->count; i++) {
		struct object_delete_item *const item = &slice->items[i];
		item->error = (struct error){.kind = ERROR_NONE};
		item->is_marker = false;
		item->version[0] = '\0';
		if (item->ref.kind != VERSION_REF_CURRENT)
			name_version(item);
		if (delete_item(slice->whole, db, &bucket, item, err) != 0)
			return -1;
		item->has_version = item->version[0] != '\0' &&
			(item->ref.kind != VERSION_REF_CURRENT ||
				bucket.versioning != BUCKET_UNVERSIONED);
	}
	return 0;
}

static void committed(struct change *change)
{
	struct delete_slice *const slice = (struct delete_slice *)change;
	struct object_delete *const delete = slice->whole;
	for (size_t i = 0; change->failed && i < slice->count; i++)
		slice->items[i].error = change->error;
	if (atomic_fetch_sub(&delete->under_way, 1) == 1)
		delete->done(delete->owner);
}

struct object_delete *object_delete_start(
	struct store *store, const struct object_delete_params *params)
{
	ASSERT(params->count >= 1 && params->count <= OBJECT_DELETE_MAX);
	struct object_delete *const delete = memory_new(sizeof(*delete));
	delete->store = store;
	delete->arena = arena_new(DELETE_ARENA_BYTES);
	delete->bucket =
		arena_copy(delete->arena, span_slice(params->bucket, 0, BUCKET_TEXT_MAX_BYTES));
	delete->bucket_id = params->bucket_id;
	delete->done = params->done;
	delete->owner = params->owner;
	delete->slice_count = (params->count + DELETE_CHANGE_ITEMS - 1) / DELETE_CHANGE_ITEMS;
	delete->slices =
		arena_take_array(delete->arena, delete->slice_count, sizeof(*delete->slices));
	ASSERT(!arena_overflowed(delete->arena));
	const size_t slice_count = delete->slice_count;
	atomic_init(&delete->under_way, slice_count);
	for (size_t i = 0; i < slice_count; i++) {
		struct delete_slice *const slice = &delete->slices[i];
		const size_t from = i * DELETE_CHANGE_ITEMS;
		slice->whole = delete;
		slice->items = params->items + from;
		slice->count = params->count - from < DELETE_CHANGE_ITEMS ? params->count - from
									  : DELETE_CHANGE_ITEMS;
		slice->change.apply = apply;
		slice->change.done = committed;
	}
	for (size_t i = 0; i < slice_count; i++)
		committer_submit(store_committer(store), &delete->slices[i].change);
	return delete;
}

int object_delete_outcome(struct object_delete *change, struct error *err)
{
	for (size_t i = 0; i < change->slice_count; i++) {
		if (change->slices[i].change.failed) {
			*err = change->slices[i].change.error;
			return -1;
		}
	}
	return 0;
}

void object_delete_free(struct object_delete *change)
{
	if (change == NULL)
		return;
	arena_free(change->arena);
	free(change);
}
