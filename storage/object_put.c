/* open --write*--> finish --ingest done--> change queued: place, apply (conditions judged, rows written) --COMMIT--> done
 *                            |                                                                              ^
 *                            +-- the bytes could not be stored -----------------------------------------------+ */
#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/memory.h"
#include "base/random.h"
#include "storage/bucket_row.h"
#include "storage/committer.h"
#include "storage/header_blob.h"
#include "storage/ingest.h"
#include "storage/object_internal.h"
#include "storage/pack_row.h"
#include "storage/part.h"

enum { PUT_ARENA_BYTES = 128 * 1024, PUT_HEADERS_MAX_BYTES = 16 * 1024 };

struct object_put {
	struct change change; /* first */
	struct store *store;
	struct arena *arena; /* the texts below */
	struct span bucket;
	int64_t bucket_id; /* as it was when the upload began: that is what the caller was let into */
	struct span key;
	const struct object_header *headers;
	size_t header_count;
	struct object_conditions conditions;
	bool has_content_md5;
	uint8_t content_md5[16];
	struct ingest *ingest;
	struct buffer header_blob;
	struct version version; /* as committed */
	void (*room)(void *owner);
	void (*done)(void *owner);
	void *owner;
	bool failed;
	struct error error;
};

static void settle(struct object_put *const put)
{
	put->done(put->owner);
}

static int place(struct change *const change, struct error *const err)
{
	struct object_put *const put = (struct object_put *)change;
	if (ingest_place(put->ingest, err) != 0)
		return -1;
	const struct stored_part *const part = ingest_part(put->ingest);
	ASSERT(part->has_md5);
	if (put->has_content_md5 && memcmp(part->md5, put->content_md5, sizeof(put->content_md5)) != 0)
		return error_set(err, ERROR_BAD_DIGEST, "The body's MD5 differs from the declared Content-MD5.");
	return 0;
}

static int record_packs(const struct object_put *const put, struct db *const db, struct error *const err)
{
	const struct pack_record *records = NULL;
	const size_t count = ingest_packs(put->ingest, &records);
	for (size_t i = 0; i < count; i++)
		if (pack_row_record(db, &records[i], err) != 0)
			return -1;
	return 0;
}

static void fill_version(struct object_put *const put, const int64_t bucket)
{
	const struct stored_part *const part = ingest_part(put->ingest);
	struct version *const version = &put->version;
	*version = (struct version){
		.bucket = bucket,
		.key = put->key,
		.kind = part->is_inline ? VERSION_INLINE : VERSION_SEGMENTS,
		.size = part->size,
		.digest = part->digest,
		.file_hash = part->file_hash,
		.modified_ms = store_clock(put->store)->wall_ms(store_clock(put->store)),
		.headers = buffer_span(&put->header_blob),
	};
	random_bytes(version->id, VERSION_ID_BYTES);
	encode_hex(span_of(part->md5, sizeof(part->md5)), version->etag);
}

static int add_version(struct object_put *const put, struct db *const db, const int64_t bucket, struct error *const err)
{
	const struct stored_part *const part = ingest_part(put->ingest);
	struct version *const version = &put->version;
	fill_version(put, bucket);
	if (part->is_inline)
		version->contents = part_inline_contents(part->inline_bytes);
	else if (part_set_add_single(db, part, &version->part_set, &version->contents, err) != 0)
		return -1;
	if (version_add(db, version, err) != 0)
		return -1;
	return part->is_inline ? part_inline_add(db, version->sequence, part->inline_bytes, err) : 0;
}

static int apply(struct change *const change, struct db *const db, struct error *const err)
{
	struct object_put *const put = (struct object_put *)change;
	int64_t bucket = 0;
	struct version current;
	if (bucket_row_find(db, put->bucket, &bucket, err) != 0)
		return -1;
	if (bucket != put->bucket_id)
		return error_set(err, ERROR_NO_BUCKET, "The bucket '%.*s' was deleted while the upload was on its way.", (int)put->bucket.len,
			(const char *)put->bucket.data);
	const int found = version_find_current(db, bucket, put->key, NULL, &current, err);
	if (found < 0 || object_conditions_check(&put->conditions, found == 1 ? current.etag : NULL, err) != 0)
		return -1;
	if (found == 1 && version_retire(db, &current, err) != 0)
		return -1;
	return record_packs(put, db, err) != 0 ? -1 : add_version(put, db, bucket, err);
}

static void committed(struct change *const change)
{
	struct object_put *const put = (struct object_put *)change;
	put->failed = change->failed;
	if (put->failed)
		put->error = change->error;
	else
		ingest_committed(put->ingest);
	if (change->in_doubt)
		ingest_in_doubt(put->ingest);
	settle(put);
}

static void ingest_is_done(void *const owner)
{
	struct object_put *const put = owner;
	put->failed = ingest_outcome(put->ingest, &put->error) != 0;
	if (put->failed) {
		settle(put);
		return;
	}
	put->change.place = place;
	put->change.apply = apply;
	put->change.done = committed;
	committer_submit(store_committer(put->store), &put->change);
}

static void ingest_has_room(void *const owner)
{
	struct object_put *const put = owner;
	if (put->room != NULL)
		put->room(put->owner);
}

static int check_key(const struct span key, struct error *const err)
{
	if (key.len == 0)
		return error_set(err, ERROR_INVALID, "An object key cannot be empty.");
	if (key.len > OBJECT_KEY_MAX_BYTES)
		return error_set(err, ERROR_KEY_TOO_LONG, "The object key has %zu bytes; at most %d are allowed.", key.len, OBJECT_KEY_MAX_BYTES);
	return 0;
}

static int check_headers(const struct object_put_params *const params, struct error *const err)
{
	static const char meta[] = "x-amz-meta-";
	size_t user = 0;
	size_t total = 0;
	for (size_t i = 0; i < params->header_count; i++) {
		const struct object_header *const header = &params->headers[i];
		total += header->name.len + header->value.len;
		if (span_starts(header->name, span_text(meta)))
			user += header->name.len - (sizeof(meta) - 1) + header->value.len;
	}
	if (user > OBJECT_METADATA_MAX_BYTES)
		return error_set(err, ERROR_METADATA_TOO_LARGE, "The user metadata has %zu bytes; at most %d are allowed.", user,
			OBJECT_METADATA_MAX_BYTES);
	if (total > PUT_HEADERS_MAX_BYTES)
		return error_set(err, ERROR_METADATA_TOO_LARGE, "The stored headers have %zu bytes; at most %d are allowed.", total,
			PUT_HEADERS_MAX_BYTES);
	return 0;
}

static int find_bucket(struct store *const store, const struct span bucket, int64_t *const out_id, struct error *const err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int result = bucket_row_find(db, bucket, out_id, err);
	store_reader_give(store, db);
	return result;
}

static int copy_params(struct object_put *const put, const struct object_put_params *const params, struct error *const err)
{
	struct object_header *const headers = arena_take_array(put->arena, params->header_count + 1, sizeof(*headers));
	for (size_t i = 0; headers != NULL && i < params->header_count; i++) {
		headers[i].name = arena_copy(put->arena, params->headers[i].name);
		headers[i].value = arena_copy(put->arena, params->headers[i].value);
	}
	put->headers = headers;
	put->header_count = params->header_count;
	put->bucket = arena_copy(put->arena, params->bucket);
	put->key = arena_copy(put->arena, params->key);
	put->conditions.if_match = arena_copy(put->arena, params->conditions.if_match);
	put->conditions.if_none_match = arena_copy(put->arena, params->conditions.if_none_match);
	put->has_content_md5 = params->has_content_md5;
	memcpy(put->content_md5, params->content_md5, sizeof(put->content_md5));
	put->room = params->room;
	put->done = params->done;
	put->owner = params->owner;
	if (arena_overflowed(put->arena))
		return error_set(err, ERROR_TOO_LARGE, "The headers of the upload are too large.");
	buffer_init(&put->header_blob, 4 * PUT_HEADERS_MAX_BYTES);
	header_blob_write(put->headers, put->header_count, &put->header_blob);
	return buffer_check(&put->header_blob, "the stored headers", err);
}

struct object_put *object_put_open(struct store *const store, const struct object_put_params *const params, struct error *const err)
{
	int64_t bucket_id = 0;
	if (check_key(params->key, err) != 0 || check_headers(params, err) != 0 || find_bucket(store, params->bucket, &bucket_id, err) != 0)
		return NULL;
	struct object_put *const put = memory_new(sizeof(*put));
	put->store = store;
	put->bucket_id = bucket_id;
	put->arena = arena_new(PUT_ARENA_BYTES);
	const struct ingest_options options = {
		.packs = store_packs(store),
		.want_md5 = true,
		.room = ingest_has_room,
		.done = ingest_is_done,
		.owner = put,
	};
	if (copy_params(put, params, err) == 0 && (put->ingest = ingest_open(&options, err)) != NULL)
		return put;
	object_put_free(put);
	return NULL;
}

enum sink_result object_put_write(struct object_put *const put, const struct span bytes, struct error *const err)
{
	return ingest_write(put->ingest, bytes, err);
}

void object_put_finish(struct object_put *const put)
{
	ingest_finish(put->ingest); /* `put` may be gone when this returns */
}

int object_put_outcome(struct object_put *const put, struct object *const out, struct error *const err)
{
	if (put->failed) {
		*err = put->error;
		return -1;
	}
	return object_of_version(&put->version, put->arena, out, err);
}

void object_put_free(struct object_put *const put)
{
	if (put == NULL)
		return;
	if (put->ingest != NULL)
		ingest_free(put->ingest);
	buffer_release(&put->header_blob);
	arena_free(put->arena);
	free(put);
}
