/* open --write*--> finish --ingest done--> change queued: place, apply (conditions judged, rows written) --COMMIT--> done
 *                            |                                                                              ^
 *                            +-- the bytes could not be stored -----------------------------------------------+ */
#include "storage/objects/object_put.h"

#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/memory.h"
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
	struct change change; /* first */
	struct store *store;
	struct arena *arena; /* the texts below */
	struct span bucket;
	/* as it was when the upload began: that is what the caller was let into */
	int64_t bucket_id;
	struct span key;
	struct object_facts facts;
	struct object_conditions conditions;
	bool fast_etag;
	struct put_body body;
	struct buffer header_blob;
	struct version version; /* as committed */
	void (*room)(void *owner);
	void (*done)(void *owner);
	void *owner;
	bool failed;
	struct error error;
};

static void settle(struct object_put *put)
{
	put->done(put->owner);
}

static int place(struct change *change, struct error *err)
{
	struct object_put *const put = (struct object_put *)change;
	if (put_body_place(&put->body, err) != 0)
		return -1;
	ASSERT(ingest_part(put->body.ingest)->has_md5 || (put->fast_etag && !put->body.has_md5));
	return 0;
}

/* An MD5, or what is known of the bytes anyway: then the dash says that it is none. */
static void write_etag(
	const struct object_put *put, const struct stored_part *part, char out[OBJECT_ETAG_BYTES])
{
	if (!put->fast_etag) {
		encode_hex(span_of(part->md5, sizeof(part->md5)), out);
		return;
	}
	encode_hex(span_of(part->file_hash.bytes, FAST_ETAG_HASH_BYTES), out);
	memcpy(out + 2 * FAST_ETAG_HASH_BYTES, "-1", sizeof("-1"));
}

static void fill_version(struct object_put *put)
{
	const struct stored_part *const part = ingest_part(put->body.ingest);
	struct version *const version = &put->version;
	*version = (struct version){
		.bucket = put->bucket_id,
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
		.modified_ms = store_clock(put->store)->wall_ms(store_clock(put->store)),
		.headers = buffer_span(&put->header_blob),
		.tags = put->facts.tags,
	};
	random_bytes(version->id, VERSION_ID_BYTES);
	write_etag(put, part, version->etag);
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
		derive_waiting_note(
			put->store, db, version->sequence, version->key, version->size, err) != 0)
		return -1;
	return part->is_inline ? part_inline_add(db, version->sequence, part->inline_bytes, err)
			       : part_single_add(db, version->part_set, part, err);
}

static int apply(struct change *change, struct db *db, struct error *err)
{
	struct object_put *const put = (struct object_put *)change;
	struct bucket bucket;
	struct version current;
	if (bucket_row_settings(db, put->bucket, &bucket, err) != 0)
		return -1;
	if (bucket.id != put->bucket_id)
		return error_set(err, ERROR_NO_BUCKET,
			"The bucket '%.*s' was deleted while the upload was on its way.",
			(int)put->bucket.len, (const char *)put->bucket.data);
	if (server_key_guard(db, bucket.id, put->key, err) != 0)
		return -1;
	const int found = version_find_current(db, bucket.id, put->key, NULL, &current, err);
	const struct version *const under = found == 1 ? &current : NULL;
	if (found < 0 || object_conditions_check_current(&put->conditions, under, err) != 0 ||
		put_body_record(&put->body, db, err) != 0)
		return -1;
	return push_version(put, db, bucket.versioning, under, err);
}

static void committed(struct change *change)
{
	struct object_put *const put = (struct object_put *)change;
	put->failed = change->failed;
	if (put->failed)
		put->error = change->error;
	else if (put->version.completes_publish)
		store_wake(put->store, STORE_STEP_WORK);
	put_body_settle(&put->body, change);
	settle(put);
}

static void ingest_is_done(void *owner)
{
	struct object_put *const put = owner;
	put->failed = ingest_outcome(put->body.ingest, &put->error) != 0;
	if (put->failed) {
		settle(put);
		return;
	}
	put->change.place = place;
	put->change.apply = apply;
	put->change.done = committed;
	committer_submit(store_committer(put->store), &put->change);
}

static void ingest_has_room(void *owner)
{
	struct object_put *const put = owner;
	if (put->room != NULL)
		put->room(put->owner);
}

/* A key that may not be written is refused before its bytes come. */
static int find_bucket(struct store *store, struct span name, struct span key, struct bucket *out,
	struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	int result = bucket_row_settings(db, name, out, err);
	if (result == 0)
		result = server_key_guard(db, out->id, key, err);
	store_reader_give(store, db);
	return result;
}

static int copy_params(
	struct object_put *put, const struct object_put_params *params, struct error *err)
{
	put->facts = object_facts_copy(&params->facts, put->arena);
	put->bucket = arena_copy(put->arena, params->bucket);
	put->key = arena_copy(put->arena, params->key);
	put->conditions = object_conditions_copy(&params->conditions, put->arena);
	put->body.has_md5 = params->has_content_md5;
	memcpy(put->body.md5, params->content_md5, sizeof(put->body.md5));
	put->room = params->room;
	put->done = params->done;
	put->owner = params->owner;
	if (arena_overflowed(put->arena))
		return error_set(err, ERROR_TOO_LARGE, "The headers of the upload are too large.");
	buffer_init(&put->header_blob, OBJECT_HEADER_BLOB_MAX_BYTES);
	header_blob_write(put->facts.headers, put->facts.header_count, &put->header_blob);
	return buffer_check(&put->header_blob, "the stored headers", err);
}

struct object_put *object_put_open(
	struct store *store, const struct object_put_params *params, struct error *err)
{
	struct bucket bucket;
	if (object_facts_check(&params->facts, params->key, err) != 0 ||
		find_bucket(store, params->bucket, params->key, &bucket, err) != 0)
		return NULL;
	struct object_put *const put = memory_new(sizeof(*put));
	put->store = store;
	put->bucket_id = bucket.id;
	put->fast_etag = bucket.etag_policy == ETAG_FAST ||
		(bucket.etag_policy == ETAG_DEFAULT && store_fast_etags(store));
	put->arena = arena_new(PUT_ARENA_BYTES);
	const struct ingest_options options = {
		.packs = store_packs(store),
		.want_md5 = !put->fast_etag || params->has_content_md5,
		.checksum =
			params->checksum == CHECKSUM_NONE ? CHECKSUM_CRC64NVME : params->checksum,
		.room = ingest_has_room,
		.done = ingest_is_done,
		.owner = put,
	};
	if (copy_params(put, params, err) == 0 &&
		(put->body.ingest = ingest_open(&options, err)) != NULL)
		return put;
	object_put_free(put);
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

void object_put_finish(struct object_put *put)
{
	ingest_finish(put->body.ingest); /* `put` may be gone when this returns */
}

int object_put_outcome(struct object_put *put, struct object *out, struct error *err)
{
	if (put->failed) {
		*err = put->error;
		return -1;
	}
	return object_of_version(&put->version, put->arena, out, err);
}

bool object_put_bad_checksum(
	const struct object_put *put, struct checksum *out_expected, struct checksum *out_actual)
{
	if (!put->body.is_bad)
		return false;
	*out_expected = put->body.expected;
	*out_actual = put->body.actual;
	return true;
}

void object_put_free(struct object_put *put)
{
	if (put == NULL)
		return;
	ingest_free(put->body.ingest);
	buffer_release(&put->header_blob);
	arena_free(put->arena);
	free(put);
}
