/* Upload ids; creates, aborts and finds uploads. An id begins with the time, so that the listing
 * order of uploads of one key is their order of creation. Creating finds the bucket before the
 * call, for early errors, and again in the change, where only that bucket counts. Aborting drops
 * the part set, and the sweeper removes a large one. */
#include "storage/uploads/upload.h"

#include "base/encode.h"
#include "base/random.h"
#include "storage/run_tables/server_key.h"
#include "storage/uploads/upload_internal.h"
#include "storage/versions/header_blob.h"

enum { ID_TIME_BYTES = 8 };

struct upload_create {
	struct call call;
	/* With the bucket's id at the time of upload_create_call: the change is for no other
	 * bucket. */
	struct bucket_ref bucket;
	struct upload_row row;
	struct buffer header_blob;
};

struct upload_abort {
	struct call call;
	struct upload_ref ref;
};

static int upload_create_apply(struct call *call, struct db *db, struct error *err);
static void upload_create_release(struct call *call);
static int create_prepare(
	struct upload_create *create, const struct upload_create_params *params, struct error *err);
static struct upload_id make_id(int64_t now_ms);
static int create_find_bucket(struct upload_create *create, struct error *err);
static int upload_abort_apply(struct call *call, struct db *db, struct error *err);

static const struct call_kind create_kind = {
	.stages = {{.apply = upload_create_apply}},
	.too_large = "The headers of the upload are too large.",
	.release = upload_create_release,
};

static const struct call_kind abort_kind = {.stages = {{.apply = upload_abort_apply}}};

void upload_id_format(const struct upload_id *id, char out[UPLOAD_ID_TEXT_BYTES])
{
	encode_hex(span_of(id->bytes, UPLOAD_ID_BYTES), out);
}

bool upload_id_parse(struct span text, struct upload_id *out)
{
	return decode_hex(text, out->bytes, UPLOAD_ID_BYTES);
}

struct call *upload_create_call(
	struct store *store, const struct upload_create_params *params, struct error *err)
{
	if (object_facts_check(&params->facts, params->key, err) != 0)
		return NULL;
	struct upload_create *const create =
		call_new(sizeof(*create), &create_kind, store, UPLOAD_CALL_ARENA_BYTES);
	if (create_prepare(create, params, err) == 0 && create_find_bucket(create, err) == 0)
		return &create->call;
	call_free(&create->call);
	return NULL;
}

struct upload_id upload_create_result(const struct call *create)
{
	return ((const struct upload_create *)create)->row.id;
}

struct call *upload_abort_call(struct store *store, const struct upload_ref *ref)
{
	struct upload_abort *const abort =
		call_new(sizeof(*abort), &abort_kind, store, UPLOAD_CALL_ARENA_BYTES);
	abort->ref = upload_ref_copy(ref, abort->call.arena);
	return &abort->call;
}

struct upload_ref upload_ref_copy(const struct upload_ref *ref, struct arena *arena)
{
	return (struct upload_ref){.bucket = bucket_ref_copy(ref->bucket, arena),
		.key = arena_copy(arena, ref->key),
		.id = ref->id};
}

int upload_read_open(struct db *db, const struct upload_ref *ref, struct arena *arena,
	struct upload_row *out, struct error *err)
{
	struct object_place place = {.key = ref->key};
	if (bucket_row_find(db, ref->bucket, &place.bucket, err) != 0)
		return -1;
	const int found = upload_row_find(db, place, &ref->id, arena, out, err);
	if (found < 0)
		return -1;
	return found == 1 && out->state == UPLOAD_OPEN ? 0 : upload_row_no_upload(err);
}

int upload_find_open(struct store *store, const struct upload_ref *ref, struct arena *arena,
	struct upload_row *out, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int result = upload_read_open(db, ref, arena, out, err);
	store_reader_give(store, db);
	return result;
}

int upload_find(struct store *store, const struct upload_ref *ref, struct arena *arena,
	struct upload *out, struct error *err)
{
	struct upload_row row;
	if (upload_find_open(store, ref, arena, &row, err) != 0)
		return -1;
	*out = upload_of_row(&row);
	return 0;
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

static int upload_create_apply(struct call *call, struct db *db, struct error *err)
{
	struct upload_create *const create = (struct upload_create *)call;
	if (bucket_row_find(db, create->bucket, &create->row.bucket, err) != 0 ||
		upload_set_add(db, &create->row.part_set, err) != 0)
		return -1;
	return upload_row_add(db, &create->row, err);
}

static void upload_create_release(struct call *call)
{
	buffer_release(&((struct upload_create *)call)->header_blob);
}

static int create_prepare(
	struct upload_create *create, const struct upload_create_params *params, struct error *err)
{
	struct upload_row *const row = &create->row;
	struct arena *const arena = create->call.arena;
	create->bucket = bucket_ref_copy(params->bucket, arena);
	row->key = arena_copy(arena, params->key);
	row->initiator = arena_copy(arena, params->initiator);
	row->tags = arena_copy(arena, params->facts.tags);
	row->acl = params->facts.acl;
	row->storage_class = params->facts.storage_class;
	row->checksum = (struct upload_checksum){
		params->checksum != CHECKSUM_NONE, params->checksum, params->type};
	row->created_ms = store_now_ms(create->call.store);
	row->id = make_id(row->created_ms);
	buffer_init(&create->header_blob, OBJECT_HEADER_BLOB_MAX_BYTES);
	header_blob_write(params->facts.headers, params->facts.header_count, &create->header_blob);
	row->headers = buffer_span(&create->header_blob);
	return buffer_check(&create->header_blob, "the stored headers", err);
}

/* The time comes first, big-endian: the byte order of ids is the order of creation. */
static struct upload_id make_id(int64_t now_ms)
{
	struct upload_id id;
	for (int i = 0; i < ID_TIME_BYTES; i++)
		id.bytes[i] = (uint8_t)((uint64_t)now_ms >> (8 * (ID_TIME_BYTES - 1 - i)));
	random_bytes(id.bytes + ID_TIME_BYTES, UPLOAD_ID_BYTES - ID_TIME_BYTES);
	return id;
}

static int create_find_bucket(struct upload_create *create, struct error *err)
{
	struct store *const store = create->call.store;
	struct bucket bucket;
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	int result = bucket_row_settings(db, create->bucket, &bucket, err);
	if (result == 0)
		result = server_key_guard(db, bucket.id, create->row.key, err);
	store_reader_give(store, db);
	if (result != 0)
		return -1;
	create->bucket.id = bucket.id;
	create->row.fast_etags = bucket.etag_policy == ETAG_FAST ||
		(bucket.etag_policy == ETAG_DEFAULT && store_fast_etags(store));
	return 0;
}

/* A part that is still being stored finds no upload in its change. */
static int upload_abort_apply(struct call *call, struct db *db, struct error *err)
{
	const struct upload_abort *const abort = (const struct upload_abort *)call;
	struct upload_row row;
	if (upload_read_open(db, &abort->ref, NULL, &row, err) != 0 ||
		part_set_drop(db, row.part_set, err) != 0)
		return -1;
	return upload_row_remove(db, row.number, err);
}
