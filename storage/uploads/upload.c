/* Ids, and uploads begun and aborted. */
#include "storage/uploads/upload.h"

#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/memory.h"
#include "base/random.h"
#include "storage/run_tables/server_key.h"
#include "storage/uploads/upload_internal.h"
#include "storage/versions/header_blob.h"

enum { ID_TIME_BYTES = 8 };

void upload_id_format(const struct upload_id *id, char out[UPLOAD_ID_TEXT_BYTES])
{
	encode_hex(span_of(id->bytes, UPLOAD_ID_BYTES), out);
}

bool upload_id_parse(struct span text, struct upload_id *out)
{
	return decode_hex(text, out->bytes, UPLOAD_ID_BYTES);
}

/* The time in front, big-endian: ids in byte order are uploads in the order of their creation. */
static struct upload_id make_id(int64_t now_ms)
{
	struct upload_id id;
	for (int i = 0; i < ID_TIME_BYTES; i++)
		id.bytes[i] = (uint8_t)((uint64_t)now_ms >> (8 * (ID_TIME_BYTES - 1 - i)));
	random_bytes(id.bytes + ID_TIME_BYTES, UPLOAD_ID_BYTES - ID_TIME_BYTES);
	return id;
}

struct upload_create {
	struct upload_call call; /* first */
	/* as it was when the call began: that is what the caller was let into */
	int64_t bucket_id;
	struct upload_row row;
	struct buffer header_blob;
};

static int create_apply(struct change *change, struct db *db, struct error *err)
{
	struct upload_create *const create = (struct upload_create *)change;
	struct bucket bucket;
	if (bucket_row_settings(db, create->call.ref.bucket, &bucket, err) != 0)
		return -1;
	if (bucket.id != create->bucket_id)
		return error_set(err, ERROR_NO_BUCKET, "The bucket '%.*s' was deleted meanwhile.",
			(int)create->call.ref.bucket.len,
			(const char *)create->call.ref.bucket.data);
	if (upload_set_add(db, &create->row.part_set, err) != 0)
		return -1;
	return upload_row_add(db, &create->row, err);
}

static int create_prepare(
	struct upload_create *create, const struct upload_create_params *params, struct error *err)
{
	struct upload_row *const row = &create->row;
	row->key = create->call.ref.key;
	row->initiator = arena_copy(create->call.arena, params->initiator);
	row->tags = arena_copy(create->call.arena, params->facts.tags);
	row->acl = params->facts.acl;
	row->storage_class = params->facts.storage_class;
	row->checksum = (struct upload_checksum){
		params->checksum != CHECKSUM_NONE, params->checksum, params->type};
	row->created_ms = store_clock(create->call.store)->wall_ms(store_clock(create->call.store));
	row->id = make_id(row->created_ms);
	buffer_init(&create->header_blob, OBJECT_HEADER_BLOB_MAX_BYTES);
	header_blob_write(params->facts.headers, params->facts.header_count, &create->header_blob);
	row->headers = buffer_span(&create->header_blob);
	if (arena_overflowed(create->call.arena))
		return error_set(err, ERROR_TOO_LARGE, "The headers of the upload are too large.");
	return buffer_check(&create->header_blob, "the stored headers", err);
}

static int find_bucket(struct upload_create *create, struct error *err)
{
	struct store *const store = create->call.store;
	struct bucket bucket;
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	int result = bucket_row_settings(db, create->call.ref.bucket, &bucket, err);
	if (result == 0)
		result = server_key_guard(db, bucket.id, create->row.key, err);
	store_reader_give(store, db);
	if (result != 0)
		return -1;
	create->bucket_id = create->row.bucket = bucket.id;
	create->row.fast_etags = bucket.etag_policy == ETAG_FAST ||
		(bucket.etag_policy == ETAG_DEFAULT && store_fast_etags(store));
	return 0;
}

struct upload_create *upload_create_start(
	struct store *store, const struct upload_create_params *params, struct error *err)
{
	if (object_facts_check(&params->facts, params->key, err) != 0)
		return NULL;
	struct upload_create *const create = memory_new(sizeof(*create));
	const struct upload_ref ref = {.bucket = params->bucket, .key = params->key};
	upload_call_init(&create->call, store, &ref, params->done, params->owner);
	create->call.change.apply = create_apply;
	if (create_prepare(create, params, err) != 0 || find_bucket(create, err) != 0) {
		upload_create_free(create);
		return NULL;
	}
	upload_call_submit(&create->call);
	return create;
}

int upload_create_outcome(struct upload_create *create, struct upload_id *out, struct error *err)
{
	*out = create->row.id;
	return upload_call_outcome(&create->call, err);
}

void upload_create_free(struct upload_create *create)
{
	if (create == NULL)
		return;
	buffer_release(&create->header_blob);
	upload_call_release(&create->call);
	free(create);
}

struct upload_abort {
	struct upload_call call; /* first */
};

/* A part that is still on its way finds no upload when it comes to its change. */
static int abort_apply(struct change *change, struct db *db, struct error *err)
{
	const struct upload_abort *const abort = (const struct upload_abort *)change;
	struct upload_row row;
	if (upload_call_find_open(&abort->call, db, NULL, NULL, &row, err) != 0 ||
		part_set_drop(db, row.part_set, err) != 0)
		return -1;
	return upload_row_remove(db, row.number, err);
}

struct upload_abort *upload_abort_start(
	struct store *store, const struct upload_ref *ref, void (*done)(void *owner), void *owner)
{
	struct upload_abort *const abort = memory_new(sizeof(*abort));
	upload_call_init(&abort->call, store, ref, done, owner);
	abort->call.change.apply = abort_apply;
	upload_call_submit(&abort->call);
	return abort;
}

int upload_abort_outcome(struct upload_abort *abort, struct error *err)
{
	return upload_call_outcome(&abort->call, err);
}

void upload_abort_free(struct upload_abort *abort)
{
	if (abort == NULL)
		return;
	upload_call_release(&abort->call);
	free(abort);
}
