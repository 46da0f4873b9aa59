/* start --[another checksum: a helper reads the source]--> change queued --apply: source and conditions judged, rows written--> done */
#include "storage/objects/object_copy.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "storage/buckets/bucket_row.h"
#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/objects/object_row.h"
#include "storage/run_tables/server_key.h"
#include "storage/versions/content_damage.h"
#include "storage/versions/header_blob.h"
#include "storage/versions/version_copy.h"

enum { COPY_ARENA_BYTES = 256 * 1024 };

struct object_copy {
	struct change change;  /* first */
	struct helper_job job; /* reads the source */
	struct helper_lane lane;
	struct store *store;
	struct arena *arena; /* the texts below and of `version` */
	struct object source;
	struct span bucket;
	int64_t bucket_id; /* as it was at the start: that is what the caller was let into */
	struct span key;
	bool replaces_headers;
	bool replaces_tags;
	struct object_facts facts;
	struct span headers; /* a header_blob of the facts */
	struct object_conditions conditions;
	bool has_checksum; /* computed anew */
	struct checksum checksum;
	struct version version; /* as committed */
	void (*done)(void *owner);
	void *owner;
	bool failed;
	struct error error;
};

static int find_source(
	struct object_copy *copy, struct db *db, struct version *out, struct error *err)
{
	const int found = version_find_sequence(db, copy->source.sequence, copy->arena, out, err);
	if (found == 0 || (found == 1 && (out->is_marker || out->state == VERSION_HIDDEN)))
		return object_no_key(copy->source.key, err);
	return found == 1 ? 0 : -1;
}

/* The row of the copy: the source's but for what names and describes it. */
static void fill_version(struct object_copy *copy, const struct version *source, int64_t bucket)
{
	struct version *const version = &copy->version;
	const struct clock_source *const clock = store_clock(copy->store);
	*version = *source;
	version->bucket = bucket;
	version->key = copy->key;
	version->modified_ms = clock->wall_ms(clock);
	version->storage_class = copy->facts.storage_class;
	version->acl = copy->facts.acl;
	if (copy->replaces_headers)
		version->headers = copy->headers;
	if (copy->replaces_tags)
		version->tags = copy->facts.tags;
	if (copy->has_checksum) {
		version->checksum = copy->checksum;
		version->part_count = 0; /* the parts' checksums are of another algorithm */
	}
	random_bytes(version->id, VERSION_ID_BYTES);
}

static int apply(struct change *change, struct db *db, struct error *err)
{
	struct object_copy *const copy = (struct object_copy *)change;
	struct bucket bucket;
	struct version source;
	struct version current;
	if (bucket_row_settings(db, copy->bucket, &bucket, err) != 0)
		return -1;
	if (bucket.id != copy->bucket_id)
		return error_set(err, ERROR_NO_BUCKET,
			"The bucket '%.*s' was deleted while the copy was made.",
			(int)copy->bucket.len, (const char *)copy->bucket.data);
	if (server_key_guard(db, bucket.id, copy->key, err) != 0 ||
		find_source(copy, db, &source, err) != 0 ||
		content_damage_check(db, &source, copy->source.key, err) != 0)
		return -1;
	const int found = version_find_current(db, bucket.id, copy->key, NULL, &current, err);
	const struct version *const under = found == 1 ? &current : NULL;
	if (found < 0 || object_conditions_check_current(&copy->conditions, under, err) != 0)
		return -1;
	fill_version(copy, &source, bucket.id);
	return version_copy_push(
		db, bucket.versioning, &source, under, &copy->version, copy->arena, err);
}

static void committed(struct change *change)
{
	struct object_copy *const copy = (struct object_copy *)change;
	copy->failed = change->failed;
	copy->error = change->error;
	if (!change->failed && copy->version.completes_publish)
		store_wake(copy->store, STORE_STEP_WORK);
	copy->done(copy->owner);
}

static void submit(struct object_copy *copy)
{
	copy->change.apply = apply;
	copy->change.done = committed;
	committer_submit(store_committer(copy->store), &copy->change);
}

static void add_to_checksum(void *stream, struct span bytes)
{
	checksum_stream_add(stream, bytes);
}

static void compute_checksum(struct helper_job *job)
{
	struct object_copy *const copy =
		(struct object_copy *)((char *)job - offsetof(struct object_copy, job));
	struct checksum_stream *const stream = checksum_stream_new(copy->checksum.algorithm);
	copy->failed = object_read_whole(copy->store, &copy->source, add_to_checksum, stream,
			       &copy->error) != 0;
	checksum_stream_result(stream, &copy->checksum);
	checksum_stream_free(stream);
	if (copy->failed)
		copy->done(copy->owner);
	else
		submit(copy);
}

/* One that is composed of parts is kept only where nobody asks for one of the whole. */
static bool needs_checksum(const struct object_copy_params *params)
{
	const struct checksum *const have = &params->source->checksum;
	return params->checksum != CHECKSUM_NONE &&
		(params->checksum != have->algorithm || have->type == CHECKSUM_COMPOSITE);
}

static int copy_texts(
	struct object_copy *copy, const struct object_copy_params *params, struct error *err)
{
	struct buffer blob;
	copy->source.key = arena_copy(copy->arena, params->source->key);
	copy->bucket = arena_copy(copy->arena, params->bucket);
	copy->key = arena_copy(copy->arena, params->key);
	copy->facts = object_facts_copy(&params->facts, copy->arena);
	copy->conditions = object_conditions_copy(&params->conditions, copy->arena);
	buffer_init(&blob, OBJECT_HEADER_BLOB_MAX_BYTES);
	header_blob_write(params->facts.headers, params->facts.header_count, &blob);
	int result = buffer_check(&blob, "the stored headers", err);
	copy->headers = arena_copy(copy->arena, buffer_span(&blob));
	buffer_release(&blob);
	if (result == 0 && arena_overflowed(copy->arena))
		result = error_set(err, ERROR_TOO_LARGE, "The headers of the copy are too large.");
	return result;
}

static int find_bucket(struct store *store, struct span name, int64_t *out_id, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int result = bucket_row_find(db, name, out_id, err);
	store_reader_give(store, db);
	return result;
}

struct object_copy *object_copy_start(
	struct store *store, const struct object_copy_params *params, struct error *err)
{
	int64_t bucket_id = 0;
	if (object_facts_check(&params->facts, params->key, err) != 0 ||
		find_bucket(store, params->bucket, &bucket_id, err) != 0)
		return NULL;
	struct object_copy *const copy = memory_new(sizeof(*copy));
	copy->store = store;
	copy->bucket_id = bucket_id;
	copy->arena = arena_new(COPY_ARENA_BYTES);
	copy->source =
		(struct object){.sequence = params->source->sequence, .size = params->source->size};
	copy->replaces_headers = params->replaces_headers;
	copy->replaces_tags = params->replaces_tags;
	copy->done = params->done;
	copy->owner = params->owner;
	if (copy_texts(copy, params, err) != 0) {
		object_copy_free(copy);
		return NULL;
	}
	if (!needs_checksum(params)) {
		submit(copy);
		return copy; /* may be gone */
	}
	copy->has_checksum = true;
	copy->checksum.algorithm = params->checksum;
	copy->job.run = compute_checksum;
	helpers_submit(store_helpers(store), &copy->lane, &copy->job);
	return copy;
}

int object_copy_outcome(struct object_copy *copy, struct object *out, struct error *err)
{
	if (copy->failed) {
		*err = copy->error;
		return -1;
	}
	return object_of_version(&copy->version, copy->arena, out, err);
}

void object_copy_free(struct object_copy *copy)
{
	if (copy == NULL)
		return;
	arena_free(copy->arena);
	free(copy);
}
