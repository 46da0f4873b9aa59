/* open, write ... --> the ingest ends --> place, apply: conditions judged, rows written --> COMMIT
 *
 * The bytes go into an ingest as they arrive. The call starts when all have arrived, and fails
 * before its change when they could not be stored. The change checks bucket, key and conditions
 * again, because a body may take hours. */
#include "storage/objects/object_put.h"

#include <string.h>

#include "base/encode.h"
#include "base/random.h"
#include "storage/buckets/bucket_row.h"
#include "storage/objects/object_row.h"
#include "storage/objects/put_body.h"
#include "storage/run_tables/server_key.h"
#include "storage/versions/derive_waiting.h"
#include "storage/versions/header_blob.h"
#include "storage/versions/part.h"

enum { PUT_ARENA_BYTES = 128 * 1024, FAST_ETAG_HASH_BYTES = 16 };

struct object_put {
	struct call call; /* its arena has the texts below */
	/* with the id of the bucket for which the upload was authorised */
	struct bucket_ref bucket;
	struct span key;
	struct object_facts facts;
	struct object_conditions conditions;
	bool fast_etag;
	struct put_body body;
	struct buffer header_blob;
	struct version version; /* as committed */
	void (*room)(void *owner);
	void *owner;
};

static int find_bucket(struct store *store, const struct object_put_params *params,
	struct bucket *out, struct error *err);
static void object_put_finish(struct call *call);
static int object_put_place(struct call *call, struct error *err);
static int object_put_apply(struct call *call, struct db *db, struct error *err);
static int push_version(struct object_put *put, struct db *db, enum bucket_versioning versioning,
	const struct version *current, struct error *err);
static void fill_version(struct object_put *put);
static void write_etag(
	const struct object_put *put, const struct stored_part *part, char out[OBJECT_ETAG_BYTES]);
static enum call_next object_put_applied(struct call *call);
static void object_put_release(struct call *call);
static void object_put_has_room(void *owner);
static void object_put_ingested(void *owner);
static int copy_params(
	struct object_put *put, const struct object_put_params *params, struct error *err);

static const struct call_kind put_kind = {
	.stages = {{.begin = object_put_finish},
		{.place = object_put_place,
			.apply = object_put_apply,
			.applied = object_put_applied}},
	.release = object_put_release,
};

struct object_put *object_put_open(
	struct store *store, const struct object_put_params *params, struct error *err)
{
	struct bucket bucket;
	if (object_facts_check(&params->facts, params->key, err) != 0 ||
		find_bucket(store, params, &bucket, err) != 0)
		return NULL;
	struct object_put *const put = call_new(sizeof(*put), &put_kind, store, PUT_ARENA_BYTES);
	put->bucket.id = bucket.id;
	put->fast_etag = bucket.etag_policy == ETAG_FAST ||
		(bucket.etag_policy == ETAG_DEFAULT && store_fast_etags(store));
	const struct ingest_options options = {
		.packs = store_packs(store),
		.want_md5 = !put->fast_etag || params->has_content_md5,
		.checksum =
			params->checksum == CHECKSUM_NONE ? CHECKSUM_CRC64NVME : params->checksum,
		.room = object_put_has_room,
		.done = object_put_ingested,
		.owner = put,
	};
	if (copy_params(put, params, err) == 0 &&
		(put->body.ingest = ingest_open(&options, err)) != NULL)
		return put;
	call_free(&put->call);
	return NULL;
}

enum sink_result object_put_write(struct object_put *put, struct span bytes, struct error *err)
{
	return ingest_write(put->body.ingest, bytes, err);
}

void object_put_expect(struct object_put *put, const struct checksum *checksum)
{
	put->body.expected = *checksum;
}

struct call *object_put_call(struct object_put *put)
{
	return &put->call;
}

int object_put_result(const struct call *call, struct object *out, struct error *err)
{
	const struct object_put *const put = (const struct object_put *)call;
	return call_outcome(call, err) != 0
		? -1
		: object_of_version(&put->version, call->arena, out, err);
}

bool object_put_bad_checksum(
	const struct call *call, struct checksum *out_expected, struct checksum *out_actual)
{
	const struct put_body *const body = &((const struct object_put *)call)->body;
	if (!body->is_bad)
		return false;
	*out_expected = body->expected;
	*out_actual = body->actual;
	return true;
}

/* Refuses a key that may not be written before its bytes come. */
static int find_bucket(struct store *store, const struct object_put_params *params,
	struct bucket *out, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	int result = bucket_row_settings(db, params->bucket, out, err);
	if (result == 0)
		result = server_key_guard(db, out->id, params->key, err);
	store_reader_give(store, db);
	return result;
}

static void object_put_finish(struct call *call)
{
	/* the call may be freed before this returns */
	ingest_finish(((struct object_put *)call)->body.ingest);
}

static int object_put_place(struct call *call, struct error *err)
{
	struct object_put *const put = (struct object_put *)call;
	if (put_body_place(&put->body, err) != 0)
		return -1;
	ASSERT(ingest_part(put->body.ingest)->has_md5 || (put->fast_etag && !put->body.has_md5));
	return 0;
}

static int object_put_apply(struct call *call, struct db *db, struct error *err)
{
	struct object_put *const put = (struct object_put *)call;
	struct bucket bucket;
	struct version current;
	if (bucket_row_settings(db, put->bucket, &bucket, err) != 0 ||
		server_key_guard(db, bucket.id, put->key, err) != 0)
		return -1;
	const int found = version_find_current(db, bucket.id, put->key, NULL, &current, err);
	const struct version *const under = found == 1 ? &current : NULL;
	if (found < 0 || object_conditions_check_current(&put->conditions, under, err) != 0 ||
		put_body_record(&put->body, db, err) != 0)
		return -1;
	return push_version(put, db, bucket.versioning, under, err);
}

static int push_version(struct object_put *put, struct db *db, enum bucket_versioning versioning,
	const struct version *current, struct error *err)
{
	const struct stored_part *const part = ingest_part(put->body.ingest);
	struct version *const version = &put->version;
	fill_version(put);
	version->contents = part->is_inline
		? part_inline_contents(part->inline_bytes)
		: part_single_contents(part->segments, part->segment_count);
	if (version_push(db, versioning, current, version, err) != 0 ||
		derive_waiting_note(put->call.store, db, version->sequence, version->key,
			version->size, err) != 0)
		return -1;
	return part->is_inline ? part_inline_add(db, version->sequence, part->inline_bytes, err)
			       : part_single_add(db, version->part_set, part, err);
}

static void fill_version(struct object_put *put)
{
	const struct stored_part *const part = ingest_part(put->body.ingest);
	struct version *const version = &put->version;
	*version = (struct version){
		.bucket = put->bucket.id,
		.key = put->key,
		.kind = part->is_inline ? VERSION_INLINE : VERSION_SINGLE,
		.size = part->size,
		.has_digest = true,
		.digest = part->digest,
		.has_file_hash = true,
		.file_hash = part->file_hash,
		.checksum = part->checksum,
		.storage_class = put->facts.storage_class,
		.acl = put->facts.acl,
		.modified_ms = store_now_ms(put->call.store),
		.headers = buffer_span(&put->header_blob),
		.tags = put->facts.tags,
	};
	random_bytes(version->id, VERSION_ID_BYTES);
	write_etag(put, part, version->etag);
}

/* The MD5, or a part of the file hash, which is known anyway: then "-1" tells clients that it is
 * not an MD5. */
static void write_etag(
	const struct object_put *put, const struct stored_part *part, char out[OBJECT_ETAG_BYTES])
{
	ASSERT(put->fast_etag || part->has_md5);
	if (!put->fast_etag) {
		encode_hex(span_of(part->md5, sizeof(part->md5)), out);
		return;
	}
	encode_hex(span_of(part->file_hash.bytes, FAST_ETAG_HASH_BYTES), out);
	memcpy(out + 2 * FAST_ETAG_HASH_BYTES, "-1", sizeof("-1"));
}

static enum call_next object_put_applied(struct call *call)
{
	struct object_put *const put = (struct object_put *)call;
	if (!call->failed && put->version.completes_publish)
		store_wake(call->store, STORE_STEP_WORK);
	put_body_settle(&put->body, &call->change);
	return call->failed ? CALL_FAILS : CALL_NEXT;
}

static void object_put_release(struct call *call)
{
	struct object_put *const put = (struct object_put *)call;
	ingest_free(put->body.ingest);
	buffer_release(&put->header_blob);
}

static void object_put_has_room(void *owner)
{
	struct object_put *const put = owner;
	if (put->room != NULL)
		put->room(put->owner);
}

static void object_put_ingested(void *owner)
{
	struct object_put *const put = owner;
	struct error err = {0};
	const int result = ingest_outcome(put->body.ingest, &err);
	call_resume(&put->call, result == 0 ? NULL : &err);
}

static int copy_params(
	struct object_put *put, const struct object_put_params *params, struct error *err)
{
	struct arena *const arena = put->call.arena;
	put->facts = object_facts_copy(&params->facts, arena);
	put->bucket.name = arena_copy(arena, params->bucket.name);
	put->key = arena_copy(arena, params->key);
	put->conditions = object_conditions_copy(&params->conditions, arena);
	put->body.has_md5 = params->has_content_md5;
	memcpy(put->body.md5, params->content_md5, sizeof(put->body.md5));
	put->room = params->room;
	put->owner = params->owner;
	if (arena_overflowed(arena))
		return error_set(err, ERROR_TOO_LARGE, "The headers of the upload are too large.");
	buffer_init(&put->header_blob, OBJECT_HEADER_BLOB_MAX_BYTES);
	header_blob_write(put->facts.headers, put->facts.header_count, &put->header_blob);
	return buffer_check(&put->header_blob, "the stored headers", err);
}
