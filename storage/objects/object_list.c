/* A page walks along one index. A common prefix costs one seek, however many keys are below it:
 * after "a/" the walk continues at the first key that does not begin with it. */
#include "storage/objects/object_list.h"

#include <string.h>

#include "storage/buckets/bucket_row.h"
#include "storage/versions/key_walk.h"
#include "storage/versions/version.h"

struct walk {
	struct key_walk keys;
	size_t limit;
	struct db *db;
	struct arena *arena;
	struct object_list *out;
	int64_t bucket;
};

static int list(struct walk *walk, struct bucket_ref bucket, struct error *err);
static int walk_on(struct walk *walk, struct error *err);
static bool is_full(const struct walk *walk);
static void list_row(struct walk *walk, struct db_statement *scan, bool *out_seek);

int object_list(struct store *store, const struct object_list_params *params, struct arena *arena,
	struct object_list *out, struct error *err)
{
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	memset(out, 0, sizeof(*out));
	struct walk walk = {.limit = params->limit, .db = db, .arena = arena, .out = out};
	int result =
		key_walk_start(&walk.keys, params->prefix, params->delimiter, params->after, err);
	if (result == 0)
		result = list(&walk, params->bucket, err);
	key_walk_release(&walk.keys);
	store_snapshot_give(store, db);
	return result;
}

static int list(struct walk *walk, struct bucket_ref bucket, struct error *err)
{
	int result = 0;
	if (bucket_row_find(walk->db, bucket, &walk->bucket, err) != 0)
		return -1;
	walk->out->entries =
		arena_take_array(walk->arena, walk->limit + 1, sizeof(*walk->out->entries));
	walk->out->prefixes =
		arena_take_array(walk->arena, walk->limit + 1, sizeof(*walk->out->prefixes));
	while (result == 0 && walk->limit > 0 && !walk->keys.ended &&
		!arena_overflowed(walk->arena))
		result = walk_on(walk, err);
	if (result == 0 && arena_overflowed(walk->arena))
		return error_set(err, ERROR_NO_MEMORY,
			"The request's memory ran out while listing objects.");
	return result;
}

/* Lists from one seek to the next, or to the end of the page. */
static int walk_on(struct walk *walk, struct error *err)
{
	struct db_statement *const scan =
		version_scan(walk->db, walk->bucket, buffer_span(&walk->keys.from), err);
	if (scan == NULL)
		return -1;
	bool seek = false;
	int got = 0;
	while (!seek && !walk->keys.ended && !arena_overflowed(walk->arena) &&
		(got = db_step(scan, err)) == 1) {
		if (!span_starts(version_scan_key(scan), walk->keys.prefix)) {
			walk->keys.ended = true;
		} else if (is_full(walk)) {
			walk->out->truncated = true;
			walk->keys.ended = true;
		} else {
			list_row(walk, scan, &seek);
		}
	}
	if (got == 0)
		walk->keys.ended = true;
	db_reset(scan);
	return got < 0 ? -1 : 0;
}

static bool is_full(const struct walk *walk)
{
	return walk->out->entry_count + walk->out->prefix_count == walk->limit;
}

/* Lists one row, or rolls it up (then *out_seek). */
static void list_row(struct walk *walk, struct db_statement *scan, bool *out_seek)
{
	struct object_list *const out = walk->out;
	ASSERT(!is_full(walk));
	const struct span key = version_scan_key(scan);
	struct span common;
	*out_seek = key_walk_roll_up(&walk->keys, key, &common);
	if (*out_seek) {
		out->last = arena_copy(walk->arena, common);
		out->prefixes[out->prefix_count++] = out->last;
		key_walk_seek_past(&walk->keys, common);
		return;
	}
	out->last = arena_copy(walk->arena, key);
	out->entries[out->entry_count].key = out->last;
	version_scan_entry(scan, &out->entries[out->entry_count++]);
}
