/* Finding needs only a reader for a moment. Opening takes a snapshot of its own, since the packs
 * must be held before rows that lead to them can go; a version that was removed since it was found
 * is not opened then. Callers that must serve exactly the version that they judged use
 * object_view.h. */
#include "storage/objects/object_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/memory.h"
#include "storage/buckets/bucket_row.h"
#include "storage/objects/object_row.h"
#include "storage/objects/object_view.h"
#include "storage/versions/header_blob.h"

enum { READ_PIECE_BYTES = 256 * 1024 };

static int not_found(const struct object_ref *ref, struct error *err);

int object_no_key(struct span key, struct error *err)
{
	return error_set(err, ERROR_NO_KEY, "The object '%.*s' does not exist.",
		(int)(key.len > 200 ? 200 : key.len), (const char *)key.data);
}

int object_of_version(
	const struct version *version, struct arena *arena, struct object *out, struct error *err)
{
	*out = (struct object){
		.sequence = version->sequence,
		.has_id = version->has_id,
		.in_versioned_bucket = version->in_versioned_bucket,
		.is_marker = version->is_marker,
		.key = version->key,
		.size = version->size,
		.has_digest = version->has_digest,
		.digest = version->digest,
		.has_file_hash = version->has_file_hash,
		.file_hash = version->file_hash,
		.checksum = version->checksum,
		.part_count = version->part_count,
		.storage_class = version->storage_class,
		.acl = version->acl,
		.tags = version->tags,
		.modified_ms = version->modified_ms,
		.retired_ms = version->retired_ms,
		.is_current = version->state == VERSION_CURRENT,
		.is_derived = version->kind == VERSION_DERIVED,
	};
	memcpy(out->version, version->id, VERSION_ID_BYTES);
	memcpy(out->etag, version->etag, OBJECT_ETAG_BYTES);
	return header_blob_read(version->headers, arena, &out->headers, &out->header_count, err);
}

int object_no_version(struct span key, struct error *err)
{
	return error_set(err, ERROR_NO_VERSION, "The object '%.*s' has no such version.",
		(int)(key.len > 200 ? 200 : key.len), (const char *)key.data);
}

int object_find_row(struct db *db, const struct object_ref *ref, struct arena *arena,
	struct version *out, struct error *err)
{
	struct bucket bucket;
	if (bucket_row_settings(db, ref->bucket, &bucket, err) != 0)
		return -1;
	const struct object_place place = {.bucket = bucket.id, .key = ref->key};
	const int got = version_find_ref(db, place, &ref->version, arena, out, err);
	out->in_versioned_bucket = bucket.versioning != BUCKET_UNVERSIONED;
	if (got != 1)
		return got == 0 ? not_found(ref, err) : -1;
	if (ref->judged_version != 0 && ref->judged_version != out->sequence)
		return object_no_key(ref->key, err);
	return 0;
}

int object_find(struct store *store, const struct object_ref *ref, struct arena *arena,
	struct object *out, struct error *err)
{
	struct version version;
	memset(out, 0, sizeof(*out));
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int found = object_find_row(db, ref, arena, &version, err);
	store_reader_give(store, db);
	if (found != 0 || object_of_version(&version, arena, out, err) != 0)
		return -1;
	return version.is_marker && ref->version.kind == VERSION_REF_CURRENT
		? object_no_key(ref->key, err)
		: 0;
}

int object_find_sequence(struct store *store, int64_t sequence, struct arena *arena,
	struct object *out, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	struct version version;
	const int got = version_find_sequence(db, sequence, arena, &version, err);
	store_reader_give(store, db);
	if (got == 0)
		return error_set(err, ERROR_NO_KEY, "The version does not exist any more.");
	return got == 1 ? object_of_version(&version, arena, out, err) : -1;
}

struct body_source *object_open(struct store *store, const struct object *object, uint64_t offset,
	uint64_t length, struct error *err)
{
	struct object_view *const view = object_view_new(store, err);
	if (view == NULL)
		return NULL;
	struct body_source *const source = object_view_open(view, object, offset, length, err);
	object_view_free(view);
	return source;
}

int object_read_whole(struct store *store, const struct object *object,
	void (*take)(void *owner, struct span bytes), void *owner, struct error *err)
{
	struct body_source *const source = object_open(store, object, 0, object->size, err);
	if (source == NULL)
		return -1;
	uint8_t *const piece = memory_new(READ_PIECE_BYTES);
	uint64_t left = object->size;
	ptrdiff_t got = 0;
	ASSERT(take != NULL);
	while (left > 0 &&
		(got = source->read(source, piece,
			 left < READ_PIECE_BYTES ? (size_t)left : READ_PIECE_BYTES, err)) > 0) {
		ASSERT((uint64_t)got <= left);
		take(owner, span_of(piece, (size_t)got));
		left -= (uint64_t)got;
	}
	free(piece);
	source->close(source);
	if (got < 0)
		return -1;
	return left == 0 ? 0 : error_set(err, ERROR_CORRUPT, "An object ended before its size.");
}

static int not_found(const struct object_ref *ref, struct error *err)
{
	return ref->version.kind == VERSION_REF_CURRENT ? object_no_key(ref->key, err)
							: object_no_version(ref->key, err);
}
