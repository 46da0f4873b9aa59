/* A page walks along the index of open uploads by key and id. A common prefix costs one seek: after
 * "a/" the walk continues at the first key that does not begin with it. Positions are pairs of key
 * and id, so that a page may end between two uploads of one key. */
#include <string.h>

#include "storage/uploads/upload_internal.h"

enum { POSITION_MAX_BYTES = 8 * OBJECT_KEY_MAX_BYTES };

struct walk {
	const struct upload_list_params *params;
	struct db *db;
	struct arena *arena;
	struct upload_list *out;
	int64_t bucket;
	struct buffer key; /* where the next seek begins, together with `id`: exclusive */
	struct upload_id id;
	bool ended; /* no upload follows */
};

static int list(struct walk *walk, struct error *err);
static void find_start(struct walk *walk);
static bool roll_up(
	const struct upload_list_params *params, struct span key, struct span *out_prefix);
static void seek_past(struct walk *walk, struct span prefix);
static int walk_on(struct walk *walk, struct error *err);
static void list_row(struct walk *walk, struct db_statement *scan, bool *out_seek);
static int find_and_list_parts(struct db *db, const struct upload_ref *ref,
	struct upload_parts_range range, struct arena *arena, struct upload_parts *out,
	struct error *err);
static int list_parts(struct db *db, const struct upload_row *upload,
	struct upload_parts_range range, struct upload_parts *out, struct error *err);

int upload_list(struct store *store, const struct upload_list_params *params, struct arena *arena,
	struct upload_list *out, struct error *err)
{
	memset(out, 0, sizeof(*out));
	if (params->after_key.len > POSITION_MAX_BYTES || params->prefix.len > POSITION_MAX_BYTES)
		return error_set(err, ERROR_INVALID,
			"A prefix or position of a listing is over %d bytes.", POSITION_MAX_BYTES);
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	struct walk walk = {.params = params, .db = db, .arena = arena, .out = out};
	buffer_init(&walk.key, 2 * POSITION_MAX_BYTES);
	const int result = list(&walk, err);
	buffer_release(&walk.key);
	store_snapshot_give(store, db);
	return result;
}

int upload_list_parts(struct store *store, const struct upload_ref *ref,
	struct upload_parts_range range, struct arena *arena, struct upload_parts *out,
	struct error *err)
{
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	memset(out, 0, sizeof(*out));
	const int result = find_and_list_parts(db, ref, range, arena, out, err);
	store_snapshot_give(store, db);
	return result;
}

static int list(struct walk *walk, struct error *err)
{
	const struct upload_list_params *const params = walk->params;
	if (bucket_row_find(walk->db, params->bucket, &walk->bucket, err) != 0)
		return -1;
	walk->out->uploads =
		arena_take_array(walk->arena, params->limit + 1, sizeof(*walk->out->uploads));
	walk->out->prefixes =
		arena_take_array(walk->arena, params->limit + 1, sizeof(*walk->out->prefixes));
	find_start(walk);
	walk->ended = walk->ended || params->limit == 0 || arena_overflowed(walk->arena);
	while (!walk->ended)
		if (walk_on(walk, err) != 0)
			return -1;
	if (arena_overflowed(walk->arena))
		return error_set(err, ERROR_NO_MEMORY,
			"The request's memory ran out while listing uploads.");
	return 0;
}

static void find_start(struct walk *walk)
{
	const struct upload_list_params *const params = walk->params;
	struct span common;
	if (span_compare(params->after_key, params->prefix) < 0) {
		buffer_add_span(&walk->key, params->prefix);
	} else if (!span_starts(params->after_key, params->prefix)) {
		walk->ended = true;
	} else if (roll_up(params, params->after_key, &common)) {
		seek_past(walk, common);
	} else {
		buffer_add_span(&walk->key, params->after_key);
		if (params->has_after_id)
			walk->id = params->after_id;
		else if (params->after_key.len > 0)
			memset(&walk->id, 0xFF, sizeof(walk->id));
	}
}

/* Whether the key is rolled up into *out_prefix; false when it is listed itself. */
static bool roll_up(
	const struct upload_list_params *params, struct span key, struct span *out_prefix)
{
	const struct span rest = span_slice(key, params->prefix.len, key.len);
	if (params->delimiter.len == 0 || rest.len == 0)
		return false;
	const uint8_t *const found =
		memmem(rest.data, rest.len, params->delimiter.data, params->delimiter.len);
	if (found == NULL)
		return false;
	*out_prefix = span_of(key.data, (size_t)(found - key.data) + params->delimiter.len);
	return true;
}

/* Moves to the first key behind all that begin with `prefix`. No upload has the smallest id. */
static void seek_past(struct walk *walk, struct span prefix)
{
	size_t len = prefix.len;
	while (len > 0 && prefix.data[len - 1] == 0xFF)
		len--;
	walk->ended = len == 0;
	memset(&walk->id, 0, sizeof(walk->id));
	buffer_reset(&walk->key);
	if (len == 0)
		return;
	buffer_add(&walk->key, prefix.data, len);
	walk->key.data[len - 1]++;
}

/* Lists from one seek to the next, or to the end of the page. */
static int walk_on(struct walk *walk, struct error *err)
{
	struct db_statement *const scan =
		upload_row_scan(walk->db, walk->bucket, buffer_span(&walk->key), &walk->id, err);
	bool seek = false;
	int got = 0;
	while (!seek && !walk->ended && !arena_overflowed(walk->arena) &&
		(got = db_step(scan, err)) == 1) {
		if (!span_starts(upload_row_scan_key(scan), walk->params->prefix)) {
			walk->ended = true;
		} else if (walk->out->upload_count + walk->out->prefix_count ==
			walk->params->limit) {
			walk->out->truncated = true;
			walk->ended = true;
		} else {
			list_row(walk, scan, &seek);
		}
	}
	walk->ended = walk->ended || !seek;
	db_reset(scan);
	return got < 0 ? -1 : 0;
}

/* Lists one row, or rolls it up (then *out_seek). */
static void list_row(struct walk *walk, struct db_statement *scan, bool *out_seek)
{
	struct upload_list *const out = walk->out;
	struct span common;
	struct upload_row row;
	ASSERT(out->upload_count + out->prefix_count < walk->params->limit);
	*out_seek = roll_up(walk->params, upload_row_scan_key(scan), &common);
	upload_row_read(scan, *out_seek ? NULL : walk->arena, &row);
	out->last_id = row.id;
	if (*out_seek) {
		out->last_key = arena_copy(walk->arena, common);
		out->prefixes[out->prefix_count++] = out->last_key;
		seek_past(walk, common);
		return;
	}
	out->last_key = row.key;
	out->uploads[out->upload_count++] = upload_of_row(&row);
}

static int find_and_list_parts(struct db *db, const struct upload_ref *ref,
	struct upload_parts_range range, struct arena *arena, struct upload_parts *out,
	struct error *err)
{
	struct upload_row row;
	if (upload_read_open(db, ref, arena, &row, err) != 0)
		return -1;
	out->upload = upload_of_row(&row);
	out->parts = arena_take_array(arena, range.limit + 1, sizeof(*out->parts));
	if (out->parts == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "The request's memory ran out while listing parts.");
	return range.after >= UPLOAD_PARTS_MAX ? 0 : list_parts(db, &row, range, out, err);
}

static int list_parts(struct db *db, const struct upload_row *upload,
	struct upload_parts_range range, struct upload_parts *out, struct error *err)
{
	struct db_statement *const scan =
		upload_set_scan(db, upload->part_set, range.after + 1, err);
	int got = 0;
	while (out->count <= range.limit && (got = db_step(scan, err)) == 1) {
		struct upload_set_part part;
		out->truncated = out->count == range.limit;
		if (out->truncated)
			break;
		upload_set_read(scan, &part);
		out->parts[out->count++] = uploaded_part_of(&part, &upload->checksum);
	}
	db_reset(scan);
	return got < 0 ? -1 : 0;
}
