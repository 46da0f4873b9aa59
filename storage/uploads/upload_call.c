#include "storage/uploads/upload_internal.h"

enum { CALL_ARENA_BYTES = 2 * 1024 * 1024 };

static void change_is_done(struct change *change)
{
	struct upload_call *const call = (struct upload_call *)change;
	upload_call_take_change(call);
	upload_call_settle(call);
}

void upload_call_init(struct upload_call *call, struct store *store, const struct upload_ref *ref,
	void (*done)(void *owner), void *owner)
{
	call->store = store;
	call->arena = arena_new(CALL_ARENA_BYTES);
	call->ref.bucket = arena_copy(call->arena, ref->bucket);
	call->ref.key = arena_copy(call->arena, ref->key);
	call->ref.id = ref->id;
	call->done = done;
	call->owner = owner;
	call->change.done = change_is_done;
}

void upload_call_release(struct upload_call *call)
{
	arena_free(call->arena);
}

void upload_call_submit(struct upload_call *call)
{
	committer_submit(store_committer(call->store), &call->change);
}

void upload_call_take_change(struct upload_call *call)
{
	call->failed = call->change.failed;
	if (call->failed)
		call->error = call->change.error;
}

void upload_call_settle(struct upload_call *call)
{
	call->done(call->owner);
}

int upload_call_outcome(const struct upload_call *call, struct error *err)
{
	if (!call->failed)
		return 0;
	*err = call->error;
	return -1;
}

static int find_open(struct db *db, const struct upload_ref *ref, struct arena *arena,
	struct bucket *out_bucket, struct upload_row *out, struct error *err)
{
	if (bucket_row_settings(db, ref->bucket, out_bucket, err) != 0)
		return -1;
	return upload_row_find_open(db, out_bucket->id, ref->key, &ref->id, arena, out, err);
}

int upload_call_find_open(const struct upload_call *call, struct db *db, struct arena *arena,
	struct bucket *out_bucket, struct upload_row *out, struct error *err)
{
	struct bucket bucket;
	return find_open(
		db, &call->ref, arena, out_bucket != NULL ? out_bucket : &bucket, out, err);
}

int upload_find_open(struct store *store, const struct upload_ref *ref, struct arena *arena,
	struct upload_row *out, struct error *err)
{
	struct bucket bucket;
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int result = find_open(db, ref, arena, &bucket, out, err);
	store_reader_give(store, db);
	return result;
}

struct upload upload_of_row(const struct upload_row *row)
{
	return (struct upload){
		.id = row->id,
		.key = row->key,
		.initiator = row->initiator,
		.created_ms = row->created_ms,
		.checksum = row->checksum,
		.storage_class = row->storage_class,
	};
}

struct uploaded_part uploaded_part_of(
	const struct upload_set_part *part, const struct upload_checksum *checksum)
{
	struct uploaded_part out = {
		.number = part->number, .size = part->size, .modified_ms = part->modified_ms};
	upload_set_etag(part, out.etag);
	out.checksum =
		upload_set_checksum(part, checksum->is_named ? checksum->algorithm : CHECKSUM_NONE);
	return out;
}
