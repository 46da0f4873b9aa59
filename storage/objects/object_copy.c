/* A copy is one change: it finds the source again, judges the conditions and writes rows that share
 * the source's bytes. A helper reads the source before it only when another checksum is wanted. */
#include "storage/objects/object_copy.h"

#include "base/random.h"
#include "storage/buckets/bucket_row.h"
#include "storage/objects/object_row.h"
#include "storage/run_tables/server_key.h"
#include "storage/versions/content_damage.h"
#include "storage/versions/header_blob.h"
#include "storage/versions/version_copy.h"

enum { COPY_ARENA_BYTES = 256 * 1024 };

static const char too_large[] = "The headers of the copy are too large.";

struct object_copy { /* its texts are in the call's arena */
	struct call call;
	struct object source;
	struct bucket_ref bucket; /* with its id at the time of object_copy_call */
	struct span key;
	bool replaces_headers;
	bool replaces_tags;
	struct object_facts facts;
	struct span headers; /* of `facts`, as a header_blob */
	struct object_conditions conditions;
	bool has_checksum; /* `checksum` is computed from the bytes */
	struct checksum checksum;
	struct version version; /* as committed */
};

static int find_bucket(
	struct store *store, struct bucket_ref ref, int64_t *out_id, struct error *err);
static bool needs_checksum(const struct object_copy_params *params);
static enum call_next object_copy_checksum(struct call *call, struct error *err);
static void object_copy_add_to_checksum(void *stream, struct span bytes);
static int object_copy_apply(struct call *call, struct db *db, struct error *err);
static int find_source(
	struct object_copy *copy, struct db *db, struct version *out, struct error *err);
static void fill_version(struct object_copy *copy, const struct version *source, int64_t bucket);
static void object_copy_settle(struct call *call);
static int copy_texts(
	struct object_copy *copy, const struct object_copy_params *params, struct error *err);

static const struct call_kind share_kind = {
	.stages = {{.apply = object_copy_apply}},
	.settle = object_copy_settle,
	.too_large = too_large,
};

static const struct call_kind checksum_kind = {
	.stages = {{.help = object_copy_checksum}, {.apply = object_copy_apply}},
	.settle = object_copy_settle,
	.too_large = too_large,
};

struct call *object_copy_call(
	struct store *store, const struct object_copy_params *params, struct error *err)
{
	int64_t bucket = 0;
	ASSERT(params->source != NULL);
	if (object_facts_check(&params->facts, params->key, err) != 0 ||
		find_bucket(store, params->bucket, &bucket, err) != 0)
		return NULL;
	const bool has_checksum = needs_checksum(params);
	struct object_copy *const copy = call_new(sizeof(*copy),
		has_checksum ? &checksum_kind : &share_kind, store, COPY_ARENA_BYTES);
	copy->source =
		(struct object){.sequence = params->source->sequence, .size = params->source->size};
	copy->bucket.id = bucket;
	copy->replaces_headers = params->replaces_headers;
	copy->replaces_tags = params->replaces_tags;
	copy->has_checksum = has_checksum;
	copy->checksum.algorithm = params->checksum;
	if (copy_texts(copy, params, err) == 0)
		return &copy->call;
	call_free(&copy->call);
	return NULL;
}

int object_copy_result(const struct call *call, struct object *out, struct error *err)
{
	const struct object_copy *const copy = (const struct object_copy *)call;
	return call_outcome(call, err) != 0
		? -1
		: object_of_version(&copy->version, call->arena, out, err);
}

static int find_bucket(
	struct store *store, struct bucket_ref ref, int64_t *out_id, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int result = bucket_row_find(db, ref, out_id, err);
	store_reader_give(store, db);
	return result;
}

/* A composite checksum is not kept when the client asks for a checksum, which is of the whole. */
static bool needs_checksum(const struct object_copy_params *params)
{
	const struct checksum *const have = &params->source->checksum;
	return params->checksum != CHECKSUM_NONE &&
		(params->checksum != have->algorithm || have->type == CHECKSUM_COMPOSITE);
}

static enum call_next object_copy_checksum(struct call *call, struct error *err)
{
	struct object_copy *const copy = (struct object_copy *)call;
	ASSERT(copy->has_checksum && copy->checksum.algorithm != CHECKSUM_NONE);
	struct checksum_stream *const stream = checksum_stream_new(copy->checksum.algorithm);
	const int result = object_read_whole(
		call->store, &copy->source, object_copy_add_to_checksum, stream, err);
	checksum_stream_result(stream, &copy->checksum);
	checksum_stream_free(stream);
	return result == 0 ? CALL_NEXT : CALL_FAILS;
}

static void object_copy_add_to_checksum(void *stream, struct span bytes)
{
	checksum_stream_add(stream, bytes);
}

static int object_copy_apply(struct call *call, struct db *db, struct error *err)
{
	struct object_copy *const copy = (struct object_copy *)call;
	struct bucket bucket;
	struct version source;
	struct version current;
	if (bucket_row_settings(db, copy->bucket, &bucket, err) != 0 ||
		server_key_guard(db, bucket.id, copy->key, err) != 0 ||
		find_source(copy, db, &source, err) != 0 ||
		content_damage_check(db, &source, copy->source.key, err) != 0)
		return -1;
	const int found = version_find_current(db, bucket.id, copy->key, NULL, &current, err);
	const struct version *const under = found == 1 ? &current : NULL;
	if (found < 0 || object_conditions_check_current(&copy->conditions, under, err) != 0)
		return -1;
	fill_version(copy, &source, bucket.id);
	const struct version_copy_params params = {
		.source = &source, .current = under, .versioning = bucket.versioning};
	return version_copy_push(db, &params, &copy->version, call->arena, err);
}

static int find_source(
	struct object_copy *copy, struct db *db, struct version *out, struct error *err)
{
	const int found =
		version_find_sequence(db, copy->source.sequence, copy->call.arena, out, err);
	if (found == 0 || (found == 1 && (out->is_marker || out->state == VERSION_HIDDEN)))
		return object_no_key(copy->source.key, err);
	return found == 1 ? 0 : -1;
}

/* Fills the copy's row: the source's, with other names and facts. */
static void fill_version(struct object_copy *copy, const struct version *source, int64_t bucket)
{
	struct version *const version = &copy->version;
	*version = *source;
	version->bucket = bucket;
	version->key = copy->key;
	version->modified_ms = store_now_ms(copy->call.store);
	version->storage_class = copy->facts.storage_class;
	version->acl = copy->facts.acl;
	if (copy->replaces_headers)
		version->headers = copy->headers;
	if (copy->replaces_tags)
		version->tags = copy->facts.tags;
	if (copy->has_checksum) {
		version->checksum = copy->checksum;
		version->part_count = 0; /* the parts have checksums of another algorithm */
	}
	random_bytes(version->id, VERSION_ID_BYTES);
}

static void object_copy_settle(struct call *call)
{
	const struct object_copy *const copy = (const struct object_copy *)call;
	if (!call->failed && copy->version.completes_publish)
		store_wake(call->store, STORE_STEP_WORK);
}

static int copy_texts(
	struct object_copy *copy, const struct object_copy_params *params, struct error *err)
{
	struct arena *const arena = copy->call.arena;
	struct buffer blob;
	copy->source.key = arena_copy(arena, params->source->key);
	copy->bucket.name = arena_copy(arena, params->bucket.name);
	copy->key = arena_copy(arena, params->key);
	copy->facts = object_facts_copy(&params->facts, arena);
	copy->conditions = object_conditions_copy(&params->conditions, arena);
	buffer_init(&blob, OBJECT_HEADER_BLOB_MAX_BYTES);
	header_blob_write(params->facts.headers, params->facts.header_count, &blob);
	const int result = buffer_check(&blob, "the stored headers", err);
	copy->headers = arena_copy(arena, buffer_span(&blob));
	buffer_release(&blob);
	return result;
}
