/* A listing is in the byte order of paths, but the catalog has the byte order of keys. The two
 * differ for directories: "a" comes before "a-b" and "a.txt", while its files "a/x" come after
 * them. So before the walk lists a name it lists the "earlier" directories: those whose path is a
 * prefix of the name and is followed there by a byte below '/'. It looks for them from the longest
 * to the shortest, because a shorter one has later files: one look at the index then also answers
 * for all directories whose files would come before the key that it found, and a page needs at most
 * as many looks as it has keys. Everything up to the last entry is listed, so a page can begin
 * anywhere. */
#include "storage/files/tree.h"

#include <string.h>

#include "storage/buckets/bucket_row.h"
#include "storage/buckets/bucket_totals.h"
#include "storage/files/tree_entry.h"
#include "storage/files/tree_path.h"

enum {
	/* rows beyond its limit that a page may look at: keys that are not shown */
	PAGE_ROWS_MORE = 10000,
	DIRECTORY_ROWS = 1000,       /* files of a directory that are looked at for the newest */
	PAGE_DIRECTORY_ROWS = 200000 /* the same for all directories of a page */
};

struct walk {
	const struct tree_params *params;
	struct db *db;
	struct arena *arena;
	struct tree *out;
	int64_t bucket;
	struct buffer base;        /* the prefix with its '/' */
	struct buffer from;        /* the walk continues here, inclusive */
	struct tree_position last; /* listed or skipped; its path is relative to `base` */
	size_t rows_left;
	size_t directory_rows_left;
	bool ended;
};

/* The first key that is not before the files of the directory that was looked up last, compared
 * with the path that is being listed. */
struct next_key {
	bool is_known;
	size_t common; /* length of the common prefix */
	uint8_t byte;  /* the key's next byte; 0xff when there is no key */
};

static int make_arrays(struct arena *arena, size_t count, struct tree *out, struct error *err);
static int list(struct walk *walk, struct error *err);
static int add_prefix_file(struct walk *walk, struct error *err);
static void begin_walk(struct walk *walk);
static void seek(struct walk *walk, struct span text, uint8_t end);
static void pass(struct walk *walk, struct span path, bool is_directory);
static int walk_on(struct walk *walk, struct error *err);
static void finish_page(struct walk *walk);
static int take_row(
	struct walk *walk, struct db_statement *scan, bool *out_seek, struct error *err);
static int take_name(
	struct walk *walk, struct db_statement *scan, bool *out_seek, struct error *err);
static int add_name(struct walk *walk, struct db_statement *scan, struct span path,
	bool is_directory, struct error *err);
static int add_earlier(struct walk *walk, struct span path, struct error *err);
static int find_earlier(struct walk *walk, struct span path, bool marks[OBJECT_KEY_MAX_BYTES + 1],
	struct error *err);
static bool follows(const struct walk *walk, struct span name, bool is_directory);
static bool is_before(const struct next_key *key, size_t len);
static int find_next(
	struct walk *walk, struct span path, size_t len, struct next_key *out, struct error *err);
static int add_directory(struct walk *walk, struct span path, struct error *err);
static bool has_room(struct walk *walk);
static int newest_below(struct walk *walk, const struct tree_below *below, size_t looked,
	int64_t *out_ms, struct error *err);
static int find_files(struct db *db, const struct tree_find_params *params, struct arena *arena,
	struct tree *out, struct error *err);

int tree_list(struct store *store, const struct tree_params *params, struct arena *arena,
	struct tree *out, struct error *err)
{
	struct walk walk = {.params = params,
		.arena = arena,
		.out = out,
		.rows_left = params->limit + PAGE_ROWS_MORE,
		.directory_rows_left = PAGE_DIRECTORY_ROWS};
	ASSERT(params->limit >= 1 && params->limit <= TREE_LIMIT_MAX);
	ASSERT(params->after.path.len <= OBJECT_KEY_MAX_BYTES);
	*out = (struct tree){0};
	if (make_arrays(arena, params->limit, out, err) != 0 ||
		(walk.db = store_snapshot_take(store, err)) == NULL)
		return -1;
	buffer_init(&walk.base, OBJECT_KEY_MAX_BYTES + 2);
	buffer_init(&walk.from, OBJECT_KEY_MAX_BYTES + params->after.path.len + 2);
	buffer_add_span(&walk.base, params->prefix);
	if (params->prefix.len > 0)
		buffer_add_byte(&walk.base, '/');
	const int result = list(&walk, err);
	buffer_release(&walk.base);
	buffer_release(&walk.from);
	store_snapshot_give(store, walk.db);
	return result;
}

int tree_find(struct store *store, const struct tree_find_params *params, struct arena *arena,
	struct tree *out, struct error *err)
{
	ASSERT(params->paths != NULL || params->count == 0);
	*out = (struct tree){0};
	if (make_arrays(arena, params->count, out, err) != 0)
		return -1;
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	const int result = find_files(db, params, arena, out, err);
	store_snapshot_give(store, db);
	return result;
}

static int make_arrays(struct arena *arena, size_t count, struct tree *out, struct error *err)
{
	out->entries = arena_take_array(arena, count + 1, sizeof(*out->entries));
	out->unhashed = arena_take_array(arena, count + 1, sizeof(*out->unhashed));
	return arena_overflowed(arena)
		? error_set(err, ERROR_NO_MEMORY, "The request has no memory for so many files.")
		: 0;
}

static int list(struct walk *walk, struct error *err)
{
	if (bucket_row_find(walk->db, walk->params->bucket, &walk->bucket, err) != 0)
		return -1;
	if (walk->params->prefix.len > OBJECT_KEY_MAX_BYTES ||
		(walk->params->prefix.len > 0 && !tree_path_is_shown(walk->params->prefix)))
		return 0; /* no path that is shown begins so */
	int result = add_prefix_file(walk, err);
	begin_walk(walk);
	while (result == 0 && !walk->ended && !arena_overflowed(walk->arena))
		result = walk_on(walk, err);
	if (result == 0 && arena_overflowed(walk->arena))
		return error_set(
			err, ERROR_NO_MEMORY, "The request's memory ran out while listing files.");
	return result;
}

/* Lists the file whose path is the prefix itself. */
static int add_prefix_file(struct walk *walk, struct error *err)
{
	const struct tree_params *const params = walk->params;
	if (params->prefix.len == 0 || params->skips_prefix_file || params->after.path.len > 0)
		return 0;
	struct db_statement *const scan =
		tree_entry_seek(walk->db, walk->bucket, params->prefix, err);
	const int got = db_step(scan, err);
	if (got == 1) {
		const struct span path = arena_copy(walk->arena, params->prefix);
		tree_entry_add(scan, path, walk->arena, walk->out);
		walk->out->last = (struct tree_position){path, false};
	}
	db_reset(scan);
	return got < 0 ? -1 : 0;
}

/* The walk continues right behind the text of `after`, for a directory too: names that begin with
 * its path may follow it. */
static void begin_walk(struct walk *walk)
{
	const struct tree_position *const after = &walk->params->after;
	const struct span base = buffer_span(&walk->base);
	if (span_compare(after->path, base) <= 0) {
		buffer_add_span(&walk->from, base);
		return;
	}
	seek(walk, after->path, 0);
	walk->ended = !span_starts(after->path, base);
	if (!walk->ended)
		pass(walk, after->path, after->is_directory);
}

static void seek(struct walk *walk, struct span text, uint8_t end)
{
	buffer_reset(&walk->from);
	buffer_add_span(&walk->from, text);
	buffer_add_byte(&walk->from, end);
}

static void pass(struct walk *walk, struct span path, bool is_directory)
{
	walk->out->last = (struct tree_position){path, is_directory};
	walk->last =
		(struct tree_position){span_slice(path, walk->base.len, path.len), is_directory};
}

/* Walks up to the next seek, or to the end of the page. */
static int walk_on(struct walk *walk, struct error *err)
{
	struct db_statement *const scan =
		tree_entry_scan(walk->db, walk->bucket, buffer_span(&walk->from), err);
	bool seeks = false;
	int got = -1;
	while (!seeks && !walk->ended && !arena_overflowed(walk->arena) &&
		(got = db_step(scan, err)) == 1) {
		if (!span_starts(tree_entry_key(scan), buffer_span(&walk->base)))
			walk->ended = true;
		else if (walk->rows_left-- == 0)
			finish_page(walk);
		else if (take_row(walk, scan, &seeks, err) != 0)
			got = -1;
		if (got < 0)
			break;
	}
	if (got == 0)
		walk->ended = true;
	db_reset(scan);
	return got < 0 ? -1 : 0;
}

static void finish_page(struct walk *walk)
{
	walk->out->truncated = true;
	walk->ended = true;
}

static int take_row(struct walk *walk, struct db_statement *scan, bool *out_seek, struct error *err)
{
	const struct span key = tree_entry_key(scan);
	*out_seek = false;
	if (key.len > OBJECT_KEY_MAX_BYTES)
		return error_set(err, ERROR_CORRUPT,
			"%s: a row of versions is damaged: its key has %zu bytes, not at most %d.",
			db_path(walk->db), key.len, OBJECT_KEY_MAX_BYTES);
	if (!walk->params->recursive)
		return take_name(walk, scan, out_seek, err);
	const bool is_shown = tree_path_is_shown(span_slice(key, walk->base.len, key.len));
	if (is_shown && !has_room(walk))
		return 0;
	const struct span path = arena_copy(walk->arena, key);
	if (is_shown)
		tree_entry_add(scan, path, walk->arena, walk->out);
	pass(walk, path, false);
	return 0;
}

/* Takes a row one level below the prefix: a file, or a directory, whose files are all skipped with
 * one seek. */
static int take_name(
	struct walk *walk, struct db_statement *scan, bool *out_seek, struct error *err)
{
	const struct span key = tree_entry_key(scan);
	const struct span rest = span_slice(key, walk->base.len, key.len);
	const ptrdiff_t slash = span_find(rest, '/');
	*out_seek = slash >= 0;
	const struct span path = arena_copy(
		walk->arena, slash < 0 ? key : span_slice(key, 0, walk->base.len + (size_t)slash));
	if (arena_overflowed(walk->arena))
		return error_set(
			err, ERROR_NO_MEMORY, "The request's memory ran out while listing files.");
	if (*out_seek)
		seek(walk, path, '/' + 1);
	return add_name(walk, scan, path, *out_seek, err);
}

static int add_name(struct walk *walk, struct db_statement *scan, struct span path,
	bool is_directory, struct error *err)
{
	const struct span name = span_slice(path, walk->base.len, path.len);
	if (add_earlier(walk, path, err) != 0)
		return -1;
	if (walk->ended || !follows(walk, name, is_directory))
		return 0;
	if (!tree_path_is_shown(name)) {
		pass(walk, path, is_directory);
		return 0;
	}
	if (is_directory)
		return add_directory(walk, path, err);
	if (has_room(walk)) {
		tree_entry_add(scan, path, walk->arena, walk->out);
		pass(walk, path, false);
	}
	return 0;
}

static int add_earlier(struct walk *walk, struct span path, struct error *err)
{
	bool marks[OBJECT_KEY_MAX_BYTES + 1] = {false};
	if (find_earlier(walk, path, marks, err) != 0)
		return -1;
	for (size_t len = walk->base.len + 1; len < path.len && !walk->ended; len++)
		if (marks[len] && tree_path_is_shown(span_slice(path, walk->base.len, len)) &&
			add_directory(walk, span_slice(path, 0, len), err) != 0)
			return -1;
	return 0;
}

/* Marks the lengths of the earlier directories that have files. */
static int find_earlier(struct walk *walk, struct span path, bool marks[OBJECT_KEY_MAX_BYTES + 1],
	struct error *err)
{
	struct next_key next = {0};
	ASSERT(path.len <= OBJECT_KEY_MAX_BYTES);
	for (size_t len = path.len; len-- > walk->base.len + 1 &&
		follows(walk, span_slice(path, walk->base.len, len), true);) {
		if (path.data[len] >= '/')
			continue;
		if ((!next.is_known || is_before(&next, len)) &&
			find_next(walk, path, len, &next, err) != 0)
			return -1;
		marks[len] = next.common == len && next.byte == '/';
	}
	return 0;
}

static bool follows(const struct walk *walk, struct span name, bool is_directory)
{
	const int order = span_compare(name, walk->last.path);
	return order > 0 || (order == 0 && is_directory && !walk->last.is_directory);
}

/* Whether the key comes before the files of the directory that is the path's first `len` bytes. The
 * path's next byte is below '/'. */
static bool is_before(const struct next_key *key, size_t len)
{
	return key->common > len || (key->common == len && key->byte < '/');
}

static int find_next(
	struct walk *walk, struct span path, size_t len, struct next_key *out, struct error *err)
{
	uint8_t from[OBJECT_KEY_MAX_BYTES + 1];
	uint8_t key[OBJECT_KEY_MAX_BYTES];
	size_t key_len;
	ASSERT(len <= OBJECT_KEY_MAX_BYTES);
	memcpy(from, path.data, len);
	from[len] = '/';
	const int got =
		tree_entry_next(walk->db, walk->bucket, span_of(from, len + 1), key, &key_len, err);
	*out = (struct next_key){.is_known = true, .byte = 0xff};
	while (got == 1 && out->common < key_len && out->common < path.len &&
		key[out->common] == path.data[out->common])
		out->common++;
	if (got == 1 && out->common < key_len)
		out->byte = key[out->common];
	return got < 0 ? -1 : 0;
}

/* Lists the directory of this path if it has files. */
static int add_directory(struct walk *walk, struct span path, struct error *err)
{
	const size_t left = walk->directory_rows_left;
	const size_t looks = left < DIRECTORY_ROWS ? left : DIRECTORY_ROWS;
	struct tree_below below;
	int64_t newest = 0;
	if (tree_entry_below(walk->db, walk->bucket, path, looks, &below, err) != 0)
		return -1;
	if (below.files == 0 || !has_room(walk))
		return 0;
	walk->directory_rows_left = below.files < left ? left - below.files : 1;
	if (newest_below(walk, &below, looks, &newest, err) != 0)
		return -1;
	walk->out->entries[walk->out->count++] =
		(struct tree_entry){.path = path, .is_directory = true, .uploaded_ms = newest};
	pass(walk, path, true);
	return 0;
}

/* Whether the page has room for one more entry. If not, the page ends. */
static bool has_room(struct walk *walk)
{
	if (walk->out->count < walk->params->limit)
		return true;
	finish_page(walk);
	return false;
}

/* The time of the directory's newest file or, when not all files were looked at, the time of the
 * bucket's last change. */
static int newest_below(struct walk *walk, const struct tree_below *below, size_t looked,
	int64_t *out_ms, struct error *err)
{
	struct bucket_totals totals;
	*out_ms = below->newest_ms;
	if (below->files < looked)
		return 0;
	if (bucket_totals_read(walk->db, walk->bucket, &totals, err) != 0)
		return -1;
	if (totals.updated_ms > *out_ms)
		*out_ms = totals.updated_ms;
	return 0;
}

static int find_files(struct db *db, const struct tree_find_params *params, struct arena *arena,
	struct tree *out, struct error *err)
{
	int64_t bucket;
	if (bucket_row_find(db, params->bucket, &bucket, err) != 0)
		return -1;
	for (size_t i = 0; i < params->count; i++) {
		if (!tree_path_is_shown(params->paths[i]))
			continue;
		struct db_statement *const seek_one =
			tree_entry_seek(db, bucket, params->paths[i], err);
		const int got = db_step(seek_one, err);
		if (got == 1)
			tree_entry_add(seek_one, params->paths[i], arena, out);
		db_reset(seek_one);
		if (got < 0)
			return -1;
	}
	return arena_overflowed(arena)
		? error_set(err, ERROR_NO_MEMORY,
			  "The request's memory ran out while looking for files.")
		: 0;
}
