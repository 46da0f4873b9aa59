/* A publish is one key or a folder of keys. A folder is listed page by page, and each object gets
 * its row and its digest. The convention tells how a delta is recognised: SkyRL uploads only
 * deltas, TRL has separate keys for them, and elsewhere the index of the folder says it. */
#include "storage/step_jobs/adopt_objects.h"

#include <string.h>

#include "base/encode.h"
#include "storage/objects/object_list.h"
#include "storage/objects/object_read.h"
#include "storage/objects/object_row.h"
#include "storage/runs/step_digest.h"
#include "weights/model/shard_index.h"

enum { INDEX_MAX_BYTES = 64 * 1024 * 1024, PAGE_OBJECTS = 500 };

static const char index_name[] = "model.safetensors.index.json";
static const char single_name[] = "model.safetensors";

static int take_version(
	const struct adopt_place *place, struct span key, struct version *out, struct error *err);
static int give_digest(
	const struct adopt_place *place, struct step_object *object, struct error *err);
static bool is_folder(const struct adoption *adoption);
static int find_folder(const struct adopt_place *place, const struct adoption *adoption,
	struct adopt_objects *out, struct error *err);
static int list_keys(const struct adopt_place *place, struct span prefix, struct span *keys,
	size_t *out_count, struct error *err);
static int judge_index(const struct adopt_place *place, struct span key, struct adopt_objects *out,
	struct error *err);
static void note_index(
	struct adopt_objects *out, const struct json_scan_pair *pair, struct arena *arena);
static bool is_trl_delta(const struct adoption *adoption);

int adopt_objects_take(const struct adopt_place *place, struct span key, struct span name,
	struct step_object *out, int64_t *out_version, struct error *err)
{
	struct version version;
	char id[2 * VERSION_ID_BYTES + 1];
	ASSERT(place->bucket.id != 0 && place->arena != NULL);
	if (take_version(place, key, &version, err) != 0)
		return -1;
	*out = (struct step_object){.name = arena_copy(place->arena, name),
		.key = arena_copy(place->arena, key),
		.size = version.size};
	if (!version.has_digest &&
		(give_digest(place, out, err) != 0 || take_version(place, key, &version, err) != 0))
		return -1;
	encode_hex(span_of(version.id, sizeof(version.id)), id);
	out->version = arena_copy(place->arena, span_text(id));
	out->digest = version.digest;
	*out_version = version.sequence;
	return 0;
}

int adopt_objects_read(const struct adopt_place *place, struct span key, size_t cap,
	struct span *out, struct error *err)
{
	const struct object_ref ref = {.bucket = place->bucket, .key = key};
	struct object object;
	ASSERT(place->bucket.id != 0);
	if (object_find(place->store, &ref, place->arena, &object, err) != 0)
		return -1;
	if (object.size > cap)
		return error_set(err, ERROR_TOO_LARGE,
			"The object '%.*s' has %llu bytes, over the limit of %zu.", (int)key.len,
			(const char *)key.data, (unsigned long long)object.size, cap);
	uint8_t *const bytes = arena_take(place->arena, (size_t)object.size + 1);
	if (bytes == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory for a foreign publish ran out.");
	struct body_source *const source = object_open(place->store, &object, 0, object.size, err);
	if (source == NULL)
		return -1;
	const int result = body_source_read_whole(source, bytes, (size_t)object.size, err);
	source->close(source);
	*out = span_of(bytes, (size_t)object.size);
	return result;
}

int adopt_objects_find(const struct adopt_place *place, const struct adoption *adoption,
	struct adopt_objects *out, struct error *err)
{
	struct arena *const arena = place->arena;
	*out = (struct adopt_objects){
		.objects = arena_take_array(arena, STEP_OBJECTS_MAX, sizeof(*out->objects)),
		.versions = arena_take_array(arena, STEP_OBJECTS_MAX, sizeof(*out->versions)),
	};
	if (out->objects == NULL || out->versions == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory for a foreign publish ran out.");
	out->is_delta = adoption->convention == ADOPT_SKYRL; /* which uploads only deltas */
	if (is_folder(adoption))
		return find_folder(place, adoption, out, err);
	out->is_delta = is_trl_delta(adoption);
	out->count = 1;
	const char *const name = out->is_delta ? "delta.safetensors" : single_name;
	return adopt_objects_take(place, adoption->objects, span_text(name), &out->objects[0],
		&out->versions[0], err);
}

static int take_version(
	const struct adopt_place *place, struct span key, struct version *out, struct error *err)
{
	struct db *const db = store_reader_take(place->store, err);
	if (db == NULL)
		return -1;
	const int found = version_find_current(db, place->bucket.id, key, NULL, out, err);
	store_reader_give(place->store, db);
	return found == 1 && !out->is_marker ? 0 : found < 0 ? -1 : object_no_key(key, err);
}

static int give_digest(
	const struct adopt_place *place, struct step_object *object, struct error *err)
{
	struct step_form form = {.objects = object, .object_count = 1};
	struct step_message message = {.form_count = 1};
	message.forms[0] = form;
	return step_give_digests(place->store, place->bucket.id, &message, err);
}

static bool is_folder(const struct adoption *adoption)
{
	return adoption->objects.len > 0 &&
		adoption->objects.data[adoption->objects.len - 1] == '/';
}

static int find_folder(const struct adopt_place *place, const struct adoption *adoption,
	struct adopt_objects *out, struct error *err)
{
	struct span *const keys = arena_take_array(place->arena, STEP_OBJECTS_MAX, sizeof(*keys));
	if (keys == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory for a foreign publish ran out.");
	if (list_keys(place, adoption->objects, keys, &out->count, err) != 0)
		return -1;
	for (size_t i = 0; i < out->count; i++) {
		const struct span rest = span_slice(keys[i], adoption->objects.len, keys[i].len);
		if (adopt_objects_take(
			    place, keys[i], rest, &out->objects[i], &out->versions[i], err) != 0)
			return -1;
		if (span_equal_text(rest, index_name) && judge_index(place, keys[i], out, err) != 0)
			return -1;
	}
	if (out->count > 0)
		return 0;
	return error_set(err, ERROR_NOT_FOUND, "There are no objects below '%.*s'.",
		(int)adoption->objects.len, (const char *)adoption->objects.data);
}

static int list_keys(const struct adopt_place *place, struct span prefix, struct span *keys,
	size_t *out_count, struct error *err)
{
	struct object_list page = {.truncated = true};
	ASSERT(*out_count == 0);
	while (page.truncated) {
		const struct object_list_params params = {.bucket = place->bucket,
			.prefix = prefix,
			.after = page.last,
			.limit = PAGE_OBJECTS};
		if (object_list(place->store, &params, place->arena, &page, err) != 0)
			return -1;
		if (*out_count + page.entry_count > STEP_OBJECTS_MAX)
			return error_set(err, ERROR_TOO_LARGE,
				"There are more than %d objects below '%.*s'.", STEP_OBJECTS_MAX,
				(int)prefix.len, (const char *)prefix.data);
		for (size_t i = 0; i < page.entry_count; i++) /* markers of folders are not files */
			if (!span_ends_text(page.entries[i].key, "/"))
				keys[(*out_count)++] = page.entries[i].key;
	}
	return 0;
}

/* A folder whose index says delta_encoding is a delta. */
static int judge_index(const struct adopt_place *place, struct span key, struct adopt_objects *out,
	struct error *err)
{
	struct span json;
	if (adopt_objects_read(place, key, INDEX_MAX_BYTES, &json, err) != 0)
		return -1;
	struct shard_index *const index =
		shard_index_parse(json, arena_text(place->arena, key), err);
	if (index == NULL)
		return -1;
	for (size_t i = 0; i < shard_index_metadata_count(index); i++)
		note_index(out, shard_index_metadata(index, i), place->arena);
	shard_index_free(index);
	return 0;
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

/* TRL has a key for each kind: deltas/step_NNNNNN.safetensors is a delta. */
static bool is_trl_delta(const struct adoption *adoption)
{
	static const char mark[] = "deltas/step_";
	const size_t tail = strlen(mark) + strlen("000000.safetensors");
	return adoption->objects.len >= tail &&
		memmem(adoption->objects.data, adoption->objects.len, mark, strlen(mark)) != NULL;
}
