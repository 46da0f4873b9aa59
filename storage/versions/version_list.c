/* A page merges two scans of two indexes: current versions by key, and older versions by key, the
 * newest first. So the older versions of a key cost only the pages that show them. Every page
 * begins with a seek, to a key or behind one version of a key. A common prefix that is rolled up
 * ends both scans, and they begin again behind it. */
#include "storage/versions/version_list.h"

#include <string.h>

#include "base/encode.h"
#include "storage/buckets/bucket_row.h"
#include "storage/versions/key_walk.h"
#include "storage/versions/version_internal.h"

#define LISTED \
	"SELECT key, id, has_id, is_marker, size, etag, modified_ms, checksum_kind, storage_class FROM versions WHERE bucket = ?1"

static const char SQL_LIST_CURRENT[] = LISTED " AND key >= ?2 AND state = 1 ORDER BY key";
static const char SQL_LIST_OLDER[] =
	LISTED " AND key >= ?2 AND state = 2 ORDER BY key, sequence DESC";
static const char SQL_LIST_BEHIND[] =
	LISTED " AND key = ?2 AND state = 2 AND sequence < ?3 ORDER BY sequence DESC";

struct walk {
	struct key_walk keys;
	const struct version_list_params *params;
	struct db *db;
	struct arena *arena;
	struct version_list *out;
	int64_t bucket;
};
struct scan {
	struct db_statement *statement;
	int got; /* of db_step; 1: it stands at a row */
	bool is_latest;
};

static int list(struct walk *walk, struct error *err);
static int resume_in_key(struct walk *walk, struct error *err);
static int list_behind(struct walk *walk, int64_t sequence, struct error *err);
static int scan_open(struct scan *scan, struct db_statement *statement, struct error *err);
static void list_row(struct walk *walk, const struct scan *scan, bool *out_seek);
static struct span scan_key(const struct scan *scan);
static void add_entry(struct walk *walk, const struct scan *scan);
static void write_version(struct db_statement *row, char out[VERSION_TEXT_BYTES]);
static int walk_on(struct walk *walk, struct error *err);
static int scan_from(struct scan *scan, struct walk *walk, const char *sql, struct error *err);
static int merge(struct walk *walk, struct scan *current, struct scan *older, struct error *err);
static struct scan *choose(struct scan *current, struct scan *older);

int version_list(struct store *store, const struct version_list_params *params, struct arena *arena,
	struct version_list *out, struct error *err)
{
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	memset(out, 0, sizeof(*out));
	struct walk walk = {.params = params, .db = db, .arena = arena, .out = out};
	int result = key_walk_start(
		&walk.keys, params->prefix, params->delimiter, params->after_key, err);
	if (result == 0)
		result = list(&walk, err);
	key_walk_release(&walk.keys);
	store_snapshot_give(store, db);
	return result;
}

static int list(struct walk *walk, struct error *err)
{
	const size_t limit = walk->params->limit;
	if (bucket_row_find(walk->db, walk->params->bucket, &walk->bucket, err) != 0)
		return -1;
	walk->out->entries = arena_take_array(walk->arena, limit + 1, sizeof(*walk->out->entries));
	walk->out->prefixes =
		arena_take_array(walk->arena, limit + 1, sizeof(*walk->out->prefixes));
	int result = limit == 0 || arena_overflowed(walk->arena) ? 0 : resume_in_key(walk, err);
	while (result == 0 && limit > 0 && !walk->keys.ended && !arena_overflowed(walk->arena))
		result = walk_on(walk, err);
	if (result == 0 && arena_overflowed(walk->arena))
		return error_set(err, ERROR_NO_MEMORY,
			"The request's memory ran out while listing versions.");
	return result;
}

/* Continues within after_key. A version that is gone marks no place: then its key is listed from
 * the top again, so that a client that deletes page by page misses nothing. */
static int resume_in_key(struct walk *walk, struct error *err)
{
	const struct version_ref *const ref = &walk->params->after_version;
	const struct span key = walk->params->after_key;
	const struct object_place place = {.bucket = walk->bucket, .key = key};
	struct version version;
	struct span common;
	if (ref->kind == VERSION_REF_CURRENT || walk->keys.ended ||
		!span_starts(key, walk->keys.prefix) || key_walk_roll_up(&walk->keys, key, &common))
		return 0;
	int found = 0;
	if (ref->kind == VERSION_REF_NULL)
		found = version_find_null(walk->db, walk->bucket, key, NULL, &version, err);
	else if (ref->kind == VERSION_REF_ID)
		found = version_find_id(walk->db, place, ref->id, NULL, &version, err);
	if (found < 0)
		return -1;
	if (found == 1)
		return list_behind(walk, version.sequence, err);
	buffer_reset(&walk->keys.from);
	buffer_add_span(&walk->keys.from, key);
	return 0;
}

/* Lists the rest of the key on which the page before ended. */
static int list_behind(struct walk *walk, int64_t sequence, struct error *err)
{
	struct scan scan = {.is_latest = false};
	bool seek = false;
	struct db_statement *const statement = db_query(walk->db, SQL_LIST_BEHIND, err,
		db_i64(walk->bucket), db_blob(walk->params->after_key), db_i64(sequence));
	int result = scan_open(&scan, statement, err);
	while (result == 0 && scan.got == 1 && !walk->keys.ended &&
		!arena_overflowed(walk->arena)) {
		list_row(walk, &scan, &seek);
		scan.got = db_step(scan.statement, err);
		result = scan.got < 0 ? -1 : 0;
	}
	db_reset(scan.statement);
	return result;
}

static int scan_open(struct scan *scan, struct db_statement *statement, struct error *err)
{
	scan->statement = statement;
	scan->got = db_step(statement, err);
	return scan->got < 0 ? -1 : 0;
}

/* Lists one row, or rolls it up (then *out_seek), or ends the page before it. */
static void list_row(struct walk *walk, const struct scan *scan, bool *out_seek)
{
	struct version_list *const out = walk->out;
	struct span common;
	if (!span_starts(scan_key(scan), walk->keys.prefix)) {
		walk->keys.ended = true;
	} else if (out->entry_count + out->prefix_count == walk->params->limit) {
		out->truncated = true;
		walk->keys.ended = true;
	} else if (key_walk_roll_up(&walk->keys, scan_key(scan), &common)) {
		out->last_key = arena_copy(walk->arena, common);
		out->last_version[0] = '\0';
		out->prefixes[out->prefix_count++] = out->last_key;
		key_walk_seek_past(&walk->keys, common);
		*out_seek = true;
	} else {
		add_entry(walk, scan);
	}
}

static struct span scan_key(const struct scan *scan)
{
	return db_column_blob(scan->statement, 0);
}

static void add_entry(struct walk *walk, const struct scan *scan)
{
	struct version_list *const out = walk->out;
	ASSERT(out->entry_count < walk->params->limit);
	struct db_statement *const row = scan->statement;
	struct version_entry *const entry = &out->entries[out->entry_count++];
	const struct span key = scan_key(scan);
	if (out->last_key.data == NULL ||
		!span_equal(out->last_key, key)) /* versions of one key share its text */
		out->last_key = arena_copy(walk->arena, key);
	entry->object.key = out->last_key;
	entry->object.modified_ms = db_column_i64(row, 6);
	entry->is_marker = db_column_i64(row, 3) != 0;
	entry->is_latest = scan->is_latest;
	write_version(row, entry->version);
	memcpy(out->last_version, entry->version, VERSION_TEXT_BYTES);
	if (entry->is_marker)
		return;
	const struct span etag = span_slice(db_column_blob(row, 5), 0, OBJECT_ETAG_BYTES - 1);
	memcpy(entry->object.etag, etag.data, etag.len);
	entry->object.size = (uint64_t)db_column_i64(row, 4);
	entry->object.storage_class = (enum storage_class)db_column_i64(row, 8);
	version_read_checksum_kind(db_column_i64(row, 7), &entry->object.checksum_algorithm,
		&entry->object.checksum_type);
}

static void write_version(struct db_statement *row, char out[VERSION_TEXT_BYTES])
{
	struct object object = {.has_id = db_column_i64(row, 2) != 0};
	const struct span id = db_column_blob(row, 1);
	memcpy(object.version, id.data, id.len < VERSION_ID_BYTES ? id.len : VERSION_ID_BYTES);
	object_version_text(&object, out);
}

/* Lists from one seek to the next, or to the end of the page. */
static int walk_on(struct walk *walk, struct error *err)
{
	struct scan current = {.is_latest = true};
	struct scan older = {.is_latest = false};
	int result = -1;
	if (scan_from(&current, walk, SQL_LIST_CURRENT, err) == 0 &&
		scan_from(&older, walk, SQL_LIST_OLDER, err) == 0)
		result = merge(walk, &current, &older, err);
	db_reset(current.statement);
	db_reset(older.statement);
	return result;
}

static int scan_from(struct scan *scan, struct walk *walk, const char *sql, struct error *err)
{
	/* Not copied: the scan is not stepped again once `from` has changed. */
	const struct span from = buffer_span(&walk->keys.from);
	struct db_statement *const statement =
		db_query(walk->db, sql, err, db_i64(walk->bucket), db_blob(from));
	return scan_open(scan, statement, err);
}

static int merge(struct walk *walk, struct scan *current, struct scan *older, struct error *err)
{
	bool seek = false;
	while (!seek && !walk->keys.ended && !arena_overflowed(walk->arena)) {
		struct scan *const scan = choose(current, older);
		if (scan->got != 1) {
			walk->keys.ended = true;
			break;
		}
		list_row(walk, scan, &seek);
		if (!seek && !walk->keys.ended && (scan->got = db_step(scan->statement, err)) < 0)
			return -1;
	}
	return 0;
}

/* The scan with the smaller key; for the same key, the current version. */
static struct scan *choose(struct scan *current, struct scan *older)
{
	if (current->got != 1)
		return older;
	return older->got != 1 || span_compare(scan_key(current), scan_key(older)) <= 0 ? current
											: older;
}
