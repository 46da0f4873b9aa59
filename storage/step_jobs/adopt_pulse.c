/* look into DELTA/ and FULL/ --> choose one --> find each file that its file_manifest names
 *      --> a full one: prove the file, unpack JSON --> sort them by name
 *
 * A delta on the newest step is preferred to a full checkpoint. Its files are taken as they lie:
 * the reader of a delta proves them itself. */
#include "storage/step_jobs/adopt_pulse.h"

#include <stdlib.h>
#include <string.h>

#include "base/format/gunzip.h"
#include "base/memory.h"
#include "storage/core/store.h"
#include "storage/objects/object_read.h"
#include "storage/objects/object_row.h"
#include "storage/objects/scratch.h"
#include "weights/delta/pulse_metadata.h"
#include "weights/model/relative_path.h"

enum { PIECE_BYTES = 1024 * 1024 }; /* hashed at a time */

static const char metadata_name[] = "metadata.json";
static const char packed_end[] = ".gz";

/* One of a window's two folders. */
struct folder {
	const char *name; /* "DELTA/", "FULL/" */
	bool is_there;
	struct span metadata_key; /* as it lies there, packed or not */
	struct pulse_metadata metadata;
};

struct taken {
	struct step_object object;
	int64_t version;
};

static int look_into(const struct adopt_pulse *pulse, struct folder *folder, struct error *err);
static int find_file(const struct adopt_pulse *pulse, const char *folder, struct span name,
	struct span *out_key, bool *out_is_packed, struct error *err);
static struct span key_of(
	const struct adopt_pulse *pulse, const char *folder, struct span name, const char *end);
static int object_exists(const struct adopt_pulse *pulse, struct span key, struct error *err);
static int no_memory(struct error *err);
static int read_json(const struct adopt_pulse *pulse, struct span key, bool is_packed,
	struct buffer *out, struct error *err);
static int check_folder(
	const struct adopt_pulse *pulse, const struct folder *folder, struct error *err);
static const struct folder *choose_folder(
	const struct adopt_pulse *pulse, const struct folder *delta, const struct folder *full);
static bool is_follower(const struct adopt_pulse *pulse, const struct folder *delta);
static int take_all(const struct adopt_pulse *pulse, const struct folder *folder,
	struct adopt_objects *out, struct error *err);
static int take_file(const struct adopt_pulse *pulse, const struct folder *folder, struct span name,
	struct taken *out, struct error *err);
static int prove_file(const struct adopt_pulse *pulse, const struct folder *folder,
	struct span name, struct span *key, bool is_packed, struct error *err);
static int unpack(const struct adopt_pulse *pulse, const struct folder *folder, struct span name,
	struct span packed, const char *shown, struct error *err);
static int put_unpacked(
	const struct adopt_pulse *pulse, struct span key, struct span bytes, struct error *err);
static bool is_same(const struct adopt_place *place, struct span key, struct span bytes);
static int hash_object(const struct adopt_pulse *pulse, struct span key, uint8_t out[SHA256_BYTES],
	struct error *err);
static int take(const struct adopt_pulse *pulse, const struct folder *folder, struct span key,
	struct taken *out, struct error *err);
static int sort_into(
	struct taken *taken, size_t count, struct adopt_objects *out, struct error *err);
static int pulse_order_taken(const void *left, const void *right);
static int refuse(const struct adopt_pulse *pulse, const struct folder *delta, struct error *err);

int adopt_pulse_find(const struct adopt_pulse *pulse, struct adopt_objects *out, struct error *err)
{
	struct folder delta = {.name = "DELTA/"};
	struct folder full = {.name = "FULL/"};
	ASSERT(pulse->has_head || pulse->head.data == NULL);
	*out = (struct adopt_objects){0};
	int result = look_into(pulse, &delta, err);
	if (result == 0)
		result = look_into(pulse, &full, err);
	const struct folder *const chosen =
		result == 0 ? choose_folder(pulse, &delta, &full) : NULL;
	if (result == 0)
		result = chosen != NULL ? take_all(pulse, chosen, out, err)
					: refuse(pulse, &delta, err);
	out->is_delta = chosen == &delta;
	pulse_metadata_release(&delta.metadata);
	pulse_metadata_release(&full.metadata);
	return result;
}

static int look_into(const struct adopt_pulse *pulse, struct folder *folder, struct error *err)
{
	struct buffer json;
	bool is_packed;
	const int found = find_file(pulse, folder->name, span_text(metadata_name),
		&folder->metadata_key, &is_packed, err);
	if (found <= 0)
		return found;
	folder->is_there = true;
	const char *const path = arena_text(pulse->place.arena, folder->metadata_key);
	int result = read_json(pulse, folder->metadata_key, is_packed, &json, err);
	if (result == 0)
		result = path == NULL
			? no_memory(err)
			: pulse_metadata_parse(&folder->metadata, buffer_span(&json), path, err);
	buffer_release(&json);
	return result == 0 ? check_folder(pulse, folder, err) : -1;
}

/* The key of a file. For JSON that of the packed file where there is one, as grail's own reader
 * looks. 1: it exists; 0: it does not; -1. */
static int find_file(const struct adopt_pulse *pulse, const char *folder, struct span name,
	struct span *out_key, bool *out_is_packed, struct error *err)
{
	*out_is_packed = false;
	if (span_ends_text(name, ".json")) {
		*out_key = key_of(pulse, folder, name, packed_end);
		const int packed = object_exists(pulse, *out_key, err);
		*out_is_packed = packed == 1;
		if (packed != 0)
			return packed;
	}
	*out_key = key_of(pulse, folder, name, "");
	return object_exists(pulse, *out_key, err);
}

/* The key of a file in a folder. {NULL,0}: no memory. */
static struct span key_of(
	const struct adopt_pulse *pulse, const char *folder, struct span name, const char *end)
{
	const struct span objects = pulse->adoption->objects;
	const char *const key = arena_format(pulse->place.arena, "%.*s%s%.*s%s", (int)objects.len,
		(const char *)objects.data, folder, (int)name.len, (const char *)name.data, end);
	return key != NULL ? span_text(key) : (struct span){0};
}

/* 1: the object exists; 0: it does not; -1. */
static int object_exists(const struct adopt_pulse *pulse, struct span key, struct error *err)
{
	const struct object_ref ref = {.bucket = pulse->place.bucket, .key = key};
	struct object object;
	struct error failure = {0};
	if (key.data == NULL)
		return no_memory(err);
	if (object_find(pulse->work->store, &ref, pulse->place.arena, &object, &failure) == 0)
		return 1;
	if (failure.kind == ERROR_NO_KEY)
		return 0;
	*err = failure;
	return -1;
}

static int no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "The memory for a foreign publish ran out.");
}

/* Reads a file of JSON and unpacks it. The caller must release the buffer in any case. */
static int read_json(const struct adopt_pulse *pulse, struct span key, bool is_packed,
	struct buffer *out, struct error *err)
{
	struct span bytes;
	buffer_init(out, PULSE_METADATA_MAX_BYTES);
	if (adopt_objects_read(&pulse->place, key, PULSE_METADATA_MAX_BYTES, &bytes, err) != 0)
		return -1;
	if (is_packed)
		return gunzip(bytes, out, err) == 0
			? 0
			: error_wrap(err, "'%.*s'", (int)key.len, (const char *)key.data);
	buffer_add_span(out, bytes);
	return buffer_check(out, "the object", err);
}

static int check_folder(
	const struct adopt_pulse *pulse, const struct folder *folder, struct error *err)
{
	const bool is_delta = strcmp(folder->name, "DELTA/") == 0;
	uint64_t window;
	if (folder->metadata.is_delta != is_delta)
		return error_set(err, ERROR_INVALID,
			"The checkpoint_type of '%.*s' does not fit its folder.",
			(int)folder->metadata_key.len, (const char *)folder->metadata_key.data);
	if (!adopt_layout_number(pulse->adoption->identity, &window) ||
		window != folder->metadata.window)
		return error_set(err, ERROR_INVALID,
			"'%.*s' says that it is window %llu, which its folder is not.",
			(int)folder->metadata_key.len, (const char *)folder->metadata_key.data,
			(unsigned long long)folder->metadata.window);
	return 0;
}

/* A step that was published by hand is not a window. A delta on it is taken too: its hash alone
 * proves that it follows. */
static const struct folder *choose_folder(
	const struct adopt_pulse *pulse, const struct folder *delta, const struct folder *full)
{
	if (is_follower(pulse, delta))
		return delta;
	if (full->is_there)
		return full;
	return delta->is_there && pulse->has_head && pulse->head.data == NULL ? delta : NULL;
}

static bool is_follower(const struct adopt_pulse *pulse, const struct folder *delta)
{
	uint64_t head;
	return delta->is_there && pulse->head.data != NULL &&
		adopt_layout_number(pulse->head, &head) && head == delta->metadata.prev_window;
}

static int take_all(const struct adopt_pulse *pulse, const struct folder *folder,
	struct adopt_objects *out, struct error *err)
{
	ASSERT(folder->is_there);
	const size_t files = pulse_metadata_file_count(&folder->metadata);
	const size_t count = files + (folder->metadata.is_delta ? 1 : 0);
	if (count > STEP_OBJECTS_MAX || files == 0)
		return error_set(err, ERROR_INVALID,
			"The file_manifest of '%.*s' names %zu files, not 1 to %d.",
			(int)folder->metadata_key.len, (const char *)folder->metadata_key.data,
			files, STEP_OBJECTS_MAX - 1);
	struct taken *const taken = arena_take_array(pulse->place.arena, count, sizeof(*taken));
	out->objects = arena_take_array(pulse->place.arena, count, sizeof(*out->objects));
	out->versions = arena_take_array(pulse->place.arena, count, sizeof(*out->versions));
	if (taken == NULL || out->objects == NULL || out->versions == NULL)
		return no_memory(err);
	for (size_t i = 0; i < files; i++) {
		const struct span name = pulse_metadata_file(&folder->metadata, i)->key;
		if (take_file(pulse, folder, name, &taken[i], err) != 0)
			return -1;
	}
	if (folder->metadata.is_delta &&
		take(pulse, folder, folder->metadata_key, &taken[files], err) != 0)
		return -1;
	return sort_into(taken, count, out, err);
}

/* A delta's reader proves its files itself, packed or not. */
static int take_file(const struct adopt_pulse *pulse, const struct folder *folder, struct span name,
	struct taken *out, struct error *err)
{
	struct span key;
	bool is_packed;
	if (!relative_path_is_valid(name))
		return error_set(err, ERROR_INVALID,
			"The file_manifest names '%.*s', which is not a file name.", (int)name.len,
			(const char *)name.data);
	const int found = find_file(pulse, folder->name, name, &key, &is_packed, err);
	if (found == 0)
		return error_set(err, ERROR_NO_KEY,
			"The file_manifest names '%.*s', which is missing.", (int)key.len,
			(const char *)key.data);
	if (found < 0)
		return -1;
	if (!folder->metadata.is_delta &&
		prove_file(pulse, folder, name, &key, is_packed, err) != 0)
		return -1;
	return take(pulse, folder, key, out, err);
}

/* Proves a file of a full checkpoint. *key becomes the key of the unpacked file. */
static int prove_file(const struct adopt_pulse *pulse, const struct folder *folder,
	struct span name, struct span *key, bool is_packed, struct error *err)
{
	uint8_t digest[SHA256_BYTES];
	const char *const shown = arena_text(pulse->place.arena, *key);
	if (shown == NULL)
		return no_memory(err);
	if (is_packed) {
		if (unpack(pulse, folder, name, *key, shown, err) != 0)
			return -1;
		*key = key_of(pulse, folder->name, name, "");
		return key->data != NULL ? 0 : no_memory(err);
	}
	return hash_object(pulse, *key, digest, err) != 0
		? -1
		: pulse_metadata_prove(&folder->metadata, name, digest, shown, err);
}

static int unpack(const struct adopt_pulse *pulse, const struct folder *folder, struct span name,
	struct span packed, const char *shown, struct error *err)
{
	uint8_t digest[SHA256_BYTES];
	struct buffer json;
	const struct span key = key_of(pulse, folder->name, name, "");
	int result = read_json(pulse, packed, true, &json, err);
	if (result == 0) {
		sha256(buffer_span(&json), digest);
		result = pulse_metadata_prove(&folder->metadata, name, digest, shown, err);
	}
	if (result == 0)
		result = key.data == NULL ? no_memory(err)
					  : put_unpacked(pulse, key, buffer_span(&json), err);
	buffer_release(&json);
	return result;
}

/* Puts the file under its own name, unless it lies there already. */
static int put_unpacked(
	const struct adopt_pulse *pulse, struct span key, struct span bytes, struct error *err)
{
	struct store *const store = pulse->work->store;
	int64_t version;
	if (is_same(&pulse->place, key, bytes))
		return 0;
	struct scratch *const scratch = scratch_open(store, err);
	if (scratch == NULL)
		return -1;
	char *const path = relative_path_join(scratch_path(scratch), span_text("unpacked"));
	int result = file_place(store_files(store), path, bytes, 0600, err);
	if (result == 0)
		result = scratch_store(store, path, pulse->place.bucket, key, &version, err);
	free(path);
	scratch_close(scratch);
	return result;
}

static bool is_same(const struct adopt_place *place, struct span key, struct span bytes)
{
	struct error ignored;
	struct span there;
	return adopt_objects_read(place, key, bytes.len, &there, &ignored) == 0 &&
		span_equal(there, bytes);
}

static int hash_object(const struct adopt_pulse *pulse, struct span key, uint8_t out[SHA256_BYTES],
	struct error *err)
{
	struct step_work *const work = pulse->work;
	ASSERT(work->spend != NULL);
	const struct object_ref ref = {.bucket = pulse->place.bucket, .key = key};
	struct object object;
	if (object_find(work->store, &ref, pulse->place.arena, &object, err) != 0)
		return -1;
	struct body_source *const source = object_open(work->store, &object, 0, object.size, err);
	if (source == NULL)
		return -1;
	struct sha256_stream *const stream = sha256_stream_new();
	uint8_t *const piece = memory_new(PIECE_BYTES);
	int result = 0;
	for (uint64_t left = object.size; left > 0 && result == 0;) {
		const size_t len = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
		result = work->spend(work, len) ? body_source_read_whole(source, piece, len, err)
						: step_work_stopped(err);
		sha256_stream_add(stream, span_of(piece, len));
		left -= len;
	}
	sha256_stream_result(stream, out);
	sha256_stream_free(stream);
	free(piece);
	source->close(source);
	return result;
}

static int take(const struct adopt_pulse *pulse, const struct folder *folder, struct span key,
	struct taken *out, struct error *err)
{
	const size_t before = pulse->adoption->objects.len + strlen(folder->name);
	ASSERT(key.len > before);
	return adopt_objects_take(&pulse->place, key, span_slice(key, before, key.len - before),
		&out->object, &out->version, err);
}

static int sort_into(
	struct taken *taken, size_t count, struct adopt_objects *out, struct error *err)
{
	qsort(taken, count, sizeof(taken[0]), pulse_order_taken);
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && span_equal(taken[i].object.name, taken[i - 1].object.name))
			return error_set(err, ERROR_INVALID,
				"The file_manifest names '%.*s' twice.",
				(int)taken[i].object.name.len,
				(const char *)taken[i].object.name.data);
		out->objects[i] = taken[i].object;
		out->versions[i] = taken[i].version;
	}
	out->count = count;
	return 0;
}

static int pulse_order_taken(const void *left, const void *right)
{
	const struct taken *const a = left;
	const struct taken *const b = right;
	return span_compare(a->object.name, b->object.name);
}

static int refuse(const struct adopt_pulse *pulse, const struct folder *delta, struct error *err)
{
	const struct span objects = pulse->adoption->objects;
	if (!delta->is_there)
		return error_set(err, ERROR_NO_KEY,
			"There is neither DELTA/metadata.json.gz nor FULL/metadata.json.gz below '%.*s'.",
			(int)objects.len, (const char *)objects.data);
	if (!pulse->has_head)
		return error_set(err, ERROR_BASE_MISSING,
			"The window is a delta on checkpoint-%llu, and the run has no step yet. Publish those weights"
			" (deltabucket publish --run %.*s/%.*s CHECKPOINT), or put the READY marker of a window"
			" with a FULL folder again; then this one's.",
			(unsigned long long)delta->metadata.prev_window,
			(int)pulse->place.bucket.name.len,
			(const char *)pulse->place.bucket.name.data, (int)pulse->run_name.len,
			(const char *)pulse->run_name.data);
	return error_set(err, ERROR_HEAD_MOVED,
		"The window builds on checkpoint-%llu, and the run's newest step is %.*s. Put the READY markers of"
		" the windows between again, in order, or wait for a window with a FULL folder.",
		(unsigned long long)delta->metadata.prev_window, (int)pulse->head.len,
		(const char *)pulse->head.data);
}
