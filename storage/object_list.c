/* A listing is a walk along one index. Rolling up costs a seek per common prefix, whatever lies below it: after emitting "a/" the walk goes
 * on at the first key that does not begin with it. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/bucket_row.h"
#include "storage/object.h"
#include "storage/version.h"

struct walk {
	const struct object_list_params *params;
	struct db *db;
	struct arena *arena;
	struct object_list *out;
	int64_t bucket;
	struct buffer from; /* where the next seek begins, inclusive */
	bool ended;         /* nothing can follow */
};

/* The first key behind all that begin with `prefix`. */
static void seek_past(struct walk *const walk, const struct span prefix)
{
	size_t len = prefix.len;
	while (len > 0 && prefix.data[len - 1] == 0xFF)
		len--;
	walk->ended = len == 0;
	buffer_reset(&walk->from);
	if (len == 0)
		return;
	buffer_add(&walk->from, prefix.data, len);
	walk->from.data[len - 1]++;
}

/* The common prefix that the key is rolled up into; false when it is listed itself. */
static bool roll_up(const struct object_list_params *const params, const struct span key, struct span *const out_prefix)
{
	if (params->delimiter.len == 0)
		return false;
	const struct span rest = span_slice(key, params->prefix.len, key.len);
	const uint8_t *const found = rest.len == 0 ? NULL : memmem(rest.data, rest.len, params->delimiter.data, params->delimiter.len);
	if (found == NULL)
		return false;
	*out_prefix = span_of(key.data, (size_t)(found - key.data) + params->delimiter.len);
	return true;
}

static void find_start(struct walk *const walk)
{
	const struct object_list_params *const params = walk->params;
	struct span common;
	if (span_compare(params->after, params->prefix) < 0) {
		buffer_add_span(&walk->from, params->prefix);
	} else if (!span_starts(params->after, params->prefix)) {
		walk->ended = true;
	} else if (roll_up(params, params->after, &common)) {
		seek_past(walk, common);
	} else {
		buffer_add_span(&walk->from, params->after);
		if (params->after.len > 0)
			buffer_add_byte(&walk->from, 0); /* the smallest key above it */
	}
}

static bool is_full(const struct walk *const walk)
{
	return walk->out->entry_count + walk->out->prefix_count == walk->params->limit;
}

/* One row: listed, or rolled up (then *out_seek). */
static void take_row(struct walk *const walk, struct db_statement *const scan, bool *const out_seek)
{
	struct object_list *const out = walk->out;
	const struct span key = version_scan_key(scan);
	struct span common;
	*out_seek = roll_up(walk->params, key, &common);
	if (*out_seek) {
		out->last = arena_copy(walk->arena, common);
		out->prefixes[out->prefix_count++] = out->last;
		seek_past(walk, common);
		return;
	}
	out->last = arena_copy(walk->arena, key);
	out->entries[out->entry_count].key = out->last;
	version_scan_entry(scan, &out->entries[out->entry_count++]);
}

/* From one seek to the next, or to the end of the page. */
static int walk_on(struct walk *const walk, struct error *const err)
{
	struct db_statement *const scan = version_scan(walk->db, walk->bucket, buffer_span(&walk->from), err);
	if (scan == NULL)
		return -1;
	bool seek = false;
	int got = 0;
	while (!seek && !walk->ended && !arena_overflowed(walk->arena) && (got = db_step(scan, err)) == 1) {
		if (!span_starts(version_scan_key(scan), walk->params->prefix)) {
			walk->ended = true;
		} else if (is_full(walk)) {
			walk->out->truncated = true;
			walk->ended = true;
		} else {
			take_row(walk, scan, &seek);
		}
	}
	if (got == 0)
		walk->ended = true;
	db_reset(scan);
	return got < 0 ? -1 : 0;
}

static int walk_all(struct walk *const walk, struct error *const err)
{
	find_start(walk);
	while (!walk->ended)
		if (walk_on(walk, err) != 0)
			return -1;
	return 0;
}

static int list(struct walk *const walk, struct error *const err)
{
	if (bucket_row_find(walk->db, walk->params->bucket, &walk->bucket, err) != 0)
		return -1;
	walk->out->entries = arena_take_array(walk->arena, walk->params->limit + 1, sizeof(*walk->out->entries));
	walk->out->prefixes = arena_take_array(walk->arena, walk->params->limit + 1, sizeof(*walk->out->prefixes));
	const int result = walk->params->limit == 0 || arena_overflowed(walk->arena) ? 0 : walk_all(walk, err);
	if (arena_overflowed(walk->arena))
		return error_set(err, ERROR_NO_MEMORY, "The request's memory ran out while listing objects.");
	return result;
}

int object_list(struct store *const store, const struct object_list_params *const params, struct arena *const arena,
	struct object_list *const out, struct error *const err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	memset(out, 0, sizeof(*out));
	struct walk walk = {.params = params, .db = db, .arena = arena, .out = out};
	buffer_init(&walk.from, (size_t)16 * OBJECT_KEY_MAX_BYTES);
	int result = 0;
	if (params->after.len > 8 * OBJECT_KEY_MAX_BYTES || params->prefix.len > 8 * OBJECT_KEY_MAX_BYTES)
		result = error_set(err, ERROR_INVALID, "A prefix or position of a listing is over %d bytes.", 8 * OBJECT_KEY_MAX_BYTES);
	if (result == 0 && (result = db_snapshot_begin(db, err)) == 0) {
		result = list(&walk, err);
		db_snapshot_end(db);
	}
	buffer_release(&walk.from);
	store_reader_give(store, db);
	return result;
}
