#include "storage/step_jobs/adopt_objects.h"

#include <string.h>

#include "base/encode.h"
#include "storage/buckets/bucket_row.h"
#include "storage/objects/object_list.h"
#include "storage/objects/object_read.h"
#include "storage/objects/object_row.h"
#include "weights/model/shard_index.h"

enum { INDEX_MAX_BYTES = 64 * 1024 * 1024, PAGE_OBJECTS = 500 };

static const char index_name[] = "model.safetensors.index.json";
static const char single_name[] = "model.safetensors";

static bool is_folder(const struct adoption *adoption)
{
	return adoption->objects.len > 0 &&
		adoption->objects.data[adoption->objects.len - 1] == '/';
}

/* Of TRL's conventions: a key for each kind. */
static bool is_trl_delta(const struct adoption *adoption)
{
	static const char mark[] = "deltas/step_";
	const size_t tail = strlen(mark) + strlen("000000.safetensors");
	return adoption->objects.len >= tail &&
		memmem(adoption->objects.data, adoption->objects.len, mark, strlen(mark)) != NULL;
}

static int give_digest(
	struct store *store, int64_t bucket, struct step_object *object, struct error *err)
{
	struct step_form form = {.objects = object, .object_count = 1};
	struct step_message message = {.form_count = 1};
	message.forms[0] = form;
	return step_give_digests(store, bucket, &message, err);
}

static int take_version(struct store *store, int64_t bucket, struct span key, struct version *out,
	struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int found = version_find_current(db, bucket, key, NULL, out, err);
	store_reader_give(store, db);
	return found == 1 && !out->is_marker ? 0 : found < 0 ? -1 : object_no_key(key, err);
}

int adopt_objects_take(struct store *store, int64_t bucket, struct span key, struct span name,
	struct arena *arena, struct step_object *out, int64_t *out_version, struct error *err)
{
	struct version version;
	char id[2 * VERSION_ID_BYTES + 1];
	if (take_version(store, bucket, key, &version, err) != 0)
		return -1;
	*out = (struct step_object){.name = arena_copy(arena, name),
		.key = arena_copy(arena, key),
		.size = version.size};
	if (!version.has_digest &&
		(give_digest(store, bucket, out, err) != 0 ||
			take_version(store, bucket, key, &version, err) != 0))
		return -1;
	encode_hex(span_of(version.id, sizeof(version.id)), id);
	out->version = arena_copy(arena, span_text(id));
	out->digest = version.digest;
	*out_version = version.sequence;
	return 0;
}

static int list_keys(struct store *store, struct span bucket, struct span prefix,
	struct arena *arena, struct span *keys, size_t *out_count, struct error *err)
{
	struct object_list page = {.truncated = true};
	while (page.truncated) {
		const struct object_list_params params = {.bucket = bucket,
			.prefix = prefix,
			.after = page.last,
			.limit = PAGE_OBJECTS};
		if (object_list(store, &params, arena, &page, err) != 0)
			return -1;
		if (*out_count + page.entry_count > STEP_OBJECTS_MAX)
			return error_set(err, ERROR_TOO_LARGE,
				"There are more than %d objects below '%.*s'.", STEP_OBJECTS_MAX,
				(int)prefix.len, (const char *)prefix.data);
		for (size_t i = 0; i < page.entry_count; i++) /* markers of folders are no files */
			if (!span_ends_text(page.entries[i].key, "/"))
				keys[(*out_count)++] = page.entries[i].key;
	}
	return 0;
}

int adopt_objects_read(struct store *store, struct span bucket, struct span key, size_t cap,
	struct arena *arena, struct span *out, struct error *err)
{
	struct object object;
	if (object_find(store, bucket, key, arena, &object, err) != 0)
		return -1;
	if (object.size > cap)
		return error_set(err, ERROR_TOO_LARGE,
			"The object '%.*s' is too large for what it should be.", (int)key.len,
			(const char *)key.data);
	uint8_t *const bytes = arena_take(arena, (size_t)object.size + 1);
	if (bytes == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory for a foreign publish ran out.");
	struct body_source *const source = object_open(store, &object, 0, object.size, err);
	if (source == NULL)
		return -1;
	const int result = body_source_read_whole(source, bytes, (size_t)object.size, err);
	source->close(source);
	*out = span_of(bytes, (size_t)object.size);
	return result;
}

static void note_index(
	struct adopt_objects *out, const struct json_scan_pair *pair, struct arena *arena)
{
	if (span_equal_text(pair->key, "delta_encoding"))
		out->is_delta = true;
	if (span_equal_text(pair->key, "version"))
		out->version = arena_copy(arena, pair->value);
	if (span_equal_text(pair->key, "base_version"))
		out->base_version = arena_copy(arena, pair->value);
}

/* An index that says delta_encoding makes a delta of the folder. */
static int judge_index(struct store *store, struct span bucket, struct span key,
	struct arena *arena, struct adopt_objects *out, struct error *err)
{
	struct span json;
	if (adopt_objects_read(store, bucket, key, INDEX_MAX_BYTES, arena, &json, err) != 0)
		return -1;
	struct shard_index *const index = shard_index_parse(json, arena_text(arena, key), err);
	if (index == NULL)
		return -1;
	for (size_t i = 0; i < shard_index_metadata_count(index); i++)
		note_index(out, shard_index_metadata(index, i), arena);
	shard_index_free(index);
	return 0;
}

static int find_bucket(struct store *store, int64_t bucket, struct arena *arena, struct span *out,
	struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int found = bucket_row_name(db, bucket, arena, out, err);
	store_reader_give(store, db);
	return found == 0
		? error_set(err, ERROR_NO_BUCKET, "The bucket of a foreign publish is gone.")
		: found == 1 ? 0
			     : -1;
}

static int find_folder(struct store *store, int64_t bucket, const struct adoption *adoption,
	struct arena *arena, struct adopt_objects *out, struct error *err)
{
	struct span name;
	struct span *const keys = arena_take_array(arena, STEP_OBJECTS_MAX, sizeof(*keys));
	if (keys == NULL || find_bucket(store, bucket, arena, &name, err) != 0 ||
		list_keys(store, name, adoption->objects, arena, keys, &out->count, err) != 0)
		return keys == NULL ? error_set(err, ERROR_NO_MEMORY,
					      "The memory for a foreign publish ran out.")
				    : -1;
	for (size_t i = 0; i < out->count; i++) {
		const struct span rest = span_slice(keys[i], adoption->objects.len, keys[i].len);
		if (adopt_objects_take(store, bucket, keys[i], rest, arena, &out->objects[i],
			    &out->versions[i], err) != 0)
			return -1;
		if (span_equal_text(rest, index_name) &&
			judge_index(store, name, keys[i], arena, out, err) != 0)
			return -1;
	}
	if (out->count > 0)
		return 0;
	return error_set(err, ERROR_NOT_FOUND, "There are no objects below '%.*s'.",
		(int)adoption->objects.len, (const char *)adoption->objects.data);
}

int adopt_objects_find(struct store *store, int64_t bucket, const struct adoption *adoption,
	struct arena *arena, struct adopt_objects *out, struct error *err)
{
	*out = (struct adopt_objects){
		.objects = arena_take_array(arena, STEP_OBJECTS_MAX, sizeof(*out->objects)),
		.versions = arena_take_array(arena, STEP_OBJECTS_MAX, sizeof(*out->versions)),
	};
	if (out->objects == NULL || out->versions == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory for a foreign publish ran out.");
	out->is_delta = adoption->convention == ADOPT_SKYRL; /* it puts nothing else */
	if (is_folder(adoption))
		return find_folder(store, bucket, adoption, arena, out, err);
	out->is_delta = is_trl_delta(adoption);
	out->count = 1;
	const char *const name = out->is_delta ? "delta.safetensors" : single_name;
	return adopt_objects_take(store, bucket, adoption->objects, span_text(name), arena,
		&out->objects[0], &out->versions[0], err);
}
