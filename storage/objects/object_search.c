/* A helper reads slice by slice, so that it stays free for others, and a slice sees one state of
 * the catalog. Before the first row that would be one too many the search ends. */
#include "storage/objects/object_search.h"

#include <string.h>

#include "storage/buckets/bucket_row.h"
#include "storage/versions/key_walk.h"
#include "storage/versions/version.h"

enum { SLICE_KEYS = 2000, ARENA_BYTES = 4 * 1024 * 1024 };

struct searching {
	struct call call; /* first */
	struct object_search_params params;
	struct object_search result;
	struct buffer position; /* the last key that was read, or params.after */
};
struct slice {
	struct searching *searching;
	struct db_statement *scan;
	size_t left; /* keys */
	bool ended;  /* no key follows */
	bool full;   /* the call must not read on */
};

static enum call_next object_search_help(struct call *call, struct error *err);
static int search_slice(struct searching *searching, struct slice *slice, struct error *err);
static int scan_slice(
	struct db *db, struct slice *slice, const struct key_walk *walk, struct error *err);
static void take_row(struct slice *slice);
static bool is_full(const struct searching *searching);
static bool is_wanted(const struct searching *searching, struct span key);
static void object_search_release(struct call *call);

static const struct call_kind kind = {
	.stages = {{.help = object_search_help}}, .release = object_search_release};

struct call *object_search_call(struct store *store, const struct object_search_params *params)
{
	struct searching *const searching = call_new(sizeof(*searching), &kind, store, ARENA_BYTES);
	struct arena *const arena = searching->call.arena;
	ASSERT(params->limit > 0 && params->limit <= OBJECT_SEARCH_LIMIT_MAX);
	searching->params = *params;
	searching->params.bucket.name = arena_copy(arena, params->bucket.name);
	searching->params.prefix = arena_copy(arena, params->prefix);
	searching->params.contains = arena_copy(arena, params->contains);
	buffer_init(&searching->position, KEY_WALK_TEXT_MAX_BYTES + 1);
	buffer_add_span(&searching->position, params->after);
	searching->result.entries =
		arena_take_array(arena, params->limit, sizeof(*searching->result.entries));
	return &searching->call;
}

const struct object_search *object_search_result(const struct call *call)
{
	return &((const struct searching *)call)->result;
}

static enum call_next object_search_help(struct call *call, struct error *err)
{
	struct searching *const searching = (struct searching *)call;
	struct slice slice = {.searching = searching, .left = SLICE_KEYS};
	if (search_slice(searching, &slice, err) != 0)
		return CALL_FAILS;
	if (!slice.ended && !slice.full)
		return CALL_AGAIN;
	searching->result.more = !slice.ended;
	searching->result.last = buffer_span(&searching->position);
	return CALL_NEXT;
}

static int search_slice(struct searching *searching, struct slice *slice, struct error *err)
{
	struct db *const db = store_snapshot_take(searching->call.store, err);
	struct key_walk walk;
	if (db == NULL)
		return -1;
	const struct span no_delimiter = {NULL, 0};
	int result = key_walk_start(&walk, searching->params.prefix, no_delimiter,
		buffer_span(&searching->position), err);
	slice->ended = walk.ended;
	if (result == 0 && !slice->ended)
		result = scan_slice(db, slice, &walk, err);
	key_walk_release(&walk);
	store_snapshot_give(searching->call.store, db);
	return result;
}

static int scan_slice(
	struct db *db, struct slice *slice, const struct key_walk *walk, struct error *err)
{
	int64_t bucket;
	int got = 0;
	if (bucket_row_find(db, slice->searching->params.bucket, &bucket, err) != 0)
		return -1;
	slice->scan = version_scan(db, bucket, buffer_span(&walk->from), err);
	if (slice->scan == NULL)
		return -1;
	while (slice->left > 0 && !slice->full && (got = db_step(slice->scan, err)) == 1 &&
		span_starts(version_scan_key(slice->scan), walk->prefix))
		take_row(slice);
	slice->ended = slice->left > 0 && !slice->full;
	db_reset(slice->scan);
	return got < 0 ? -1 : 0;
}

static void take_row(struct slice *slice)
{
	struct searching *const searching = slice->searching;
	struct object_search *const result = &searching->result;
	slice->full = is_full(searching);
	if (slice->full)
		return;
	const struct span key = version_scan_key(slice->scan);
	slice->left--;
	result->scanned++;
	buffer_reset(&searching->position);
	buffer_add_span(&searching->position, key);
	if (!is_wanted(searching, key))
		return;
	result->entries[result->count].key = arena_copy(searching->call.arena, key);
	version_scan_entry(slice->scan, &result->entries[result->count++]);
}

static bool is_full(const struct searching *searching)
{
	const struct object_search *const result = &searching->result;
	return result->count == searching->params.limit ||
		result->scanned == OBJECT_SEARCH_KEYS_MAX;
}

static bool is_wanted(const struct searching *searching, struct span key)
{
	const struct span rest = span_slice(key, searching->params.prefix.len, key.len);
	const struct span contains = searching->params.contains;
	return contains.len == 0 ||
		(rest.len > 0 && memmem(rest.data, rest.len, contains.data, contains.len) != NULL);
}

static void object_search_release(struct call *call)
{
	buffer_release(&((struct searching *)call)->position);
}
