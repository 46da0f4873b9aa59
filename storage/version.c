#include "storage/version.h"

#include <string.h>

#include "storage/part.h"
#include "storage/row_sum.h"
#include "storage/step_pin.h"

#define VERSION_COLUMNS \
	"sequence, id, bucket, key, state, kind, size, etag, digest, file_hash, modified_ms, headers, part_set, contents, checksum"

static const char SQL_VERSION_CURRENT[] =
	"SELECT " VERSION_COLUMNS " FROM versions WHERE bucket = ?1 AND key = ?2 AND state = 1";
static const char SQL_VERSION_OLDER[] =
	"SELECT " VERSION_COLUMNS " FROM versions WHERE bucket = ?1 AND key = ?2 AND id = ?3 AND state <> 1";
static const char SQL_VERSION_SEQUENCE[] = "SELECT " VERSION_COLUMNS " FROM versions WHERE sequence = ?1";
static const char SQL_VERSION_ADD[] =
	"INSERT INTO versions (id, bucket, key, state, is_marker, kind, size, etag, digest, file_hash, modified_ms, headers, part_set,"
	" contents, checksum) VALUES (?1, ?2, ?3, 1, 0, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
static const char SQL_VERSION_HIDE[] = "UPDATE versions SET state = 0 WHERE sequence = ?1";
static const char SQL_VERSION_REMOVE[] = "DELETE FROM versions WHERE sequence = ?1";
static const char SQL_VERSION_ANY[] = "SELECT 1 FROM versions WHERE bucket = ?1 AND state = 1 LIMIT 1";
/* Answered from versions_listed alone; the test of object_list checks the plan. */
static const char SQL_VERSION_SCAN[] =
	"SELECT key, size, etag, modified_ms FROM versions WHERE bucket = ?1 AND key >= ?2 AND state = 1 AND is_marker = 0 ORDER BY key";

static uint64_t version_sum(const struct version *const version, const struct span key, const struct span headers)
{
	uint64_t sum = row_sum_bytes(0, span_of(version->id, VERSION_ID_BYTES));
	sum = row_sum_number(sum, version->bucket);
	sum = row_sum_bytes(sum, key);
	sum = row_sum_number(sum, version->kind);
	sum = row_sum_number(sum, (int64_t)version->size);
	sum = row_sum_bytes(sum, span_text(version->etag));
	sum = row_sum_bytes(sum, span_of(version->digest.bytes, sizeof(version->digest.bytes)));
	sum = row_sum_bytes(sum, span_of(version->file_hash.bytes, CHUNK_ID_BYTES));
	sum = row_sum_number(sum, version->modified_ms);
	sum = row_sum_bytes(sum, headers);
	sum = row_sum_number(sum, version->part_set);
	return row_sum_number(sum, (int64_t)version->contents);
}

/* Fixed-size columns; false when one has another size. */
static bool read_blobs(struct db_statement *const statement, struct version *const out)
{
	const struct span id = db_column_blob(statement, 1);
	const struct span etag = db_column_blob(statement, 7);
	const struct span digest = db_column_blob(statement, 8);
	const struct span file_hash = db_column_blob(statement, 9);
	if (id.len != VERSION_ID_BYTES || etag.len >= OBJECT_ETAG_BYTES)
		return false;
	if (digest.len != sizeof(out->digest.bytes) || file_hash.len != CHUNK_ID_BYTES)
		return false;
	memcpy(out->id, id.data, id.len);
	memcpy(out->etag, etag.data, etag.len);
	out->etag[etag.len] = '\0';
	memcpy(out->digest.bytes, digest.data, digest.len);
	memcpy(out->file_hash.bytes, file_hash.data, file_hash.len);
	return true;
}

static int read_row(struct db *const db, struct db_statement *const statement, struct arena *const arena, struct version *const out,
	struct error *const err)
{
	memset(out, 0, sizeof(*out));
	out->sequence = db_column_i64(statement, 0);
	out->bucket = db_column_i64(statement, 2);
	out->is_current = db_column_i64(statement, 4) == 1;
	out->kind = (enum version_kind)db_column_i64(statement, 5);
	out->size = (uint64_t)db_column_i64(statement, 6);
	out->modified_ms = db_column_i64(statement, 10);
	out->part_set = db_column_i64(statement, 12);
	out->contents = (uint64_t)db_column_i64(statement, 13);
	const struct span key = db_column_blob(statement, 3);
	const struct span headers = db_column_blob(statement, 11);
	if (!read_blobs(statement, out) || version_sum(out, key, headers) != (uint64_t)db_column_i64(statement, 14))
		return error_set(err, ERROR_CORRUPT, "%s: the row of version %lld is damaged.", db_path(db), (long long)out->sequence);
	if (arena == NULL)
		return 0;
	out->key = arena_copy(arena, key);
	out->headers = arena_copy(arena, headers);
	if (arena_overflowed(arena))
		return error_set(err, ERROR_NO_MEMORY, "The request's memory ran out while reading an object.");
	return 0;
}

/* Steps a bound statement that gives one row at most. */
static int find_row(struct db *const db, struct db_statement *const statement, struct arena *const arena, struct version *const out,
	struct error *const err)
{
	int got = db_step(statement, err);
	if (got == 1 && read_row(db, statement, arena, out, err) != 0)
		got = -1;
	db_reset(statement);
	return got;
}

int version_find_current(struct db *const db, const int64_t bucket, const struct span key, struct arena *const arena,
	struct version *const out, struct error *const err)
{
	struct db_statement *const statement = db_prepare(db, SQL_VERSION_CURRENT, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, bucket);
	db_bind_blob(statement, 2, key);
	return find_row(db, statement, arena, out, err);
}

int version_find_id(struct db *const db, const int64_t bucket, const struct span key, const uint8_t id[VERSION_ID_BYTES],
	struct version *const out, struct error *const err)
{
	const int got = version_find_current(db, bucket, key, NULL, out, err);
	if (got < 0 || (got == 1 && memcmp(out->id, id, VERSION_ID_BYTES) == 0))
		return got;
	struct db_statement *const statement = db_prepare(db, SQL_VERSION_OLDER, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, bucket);
	db_bind_blob(statement, 2, key);
	db_bind_blob(statement, 3, span_of(id, VERSION_ID_BYTES));
	return find_row(db, statement, NULL, out, err);
}

int version_find_sequence(struct db *const db, const int64_t sequence, struct arena *const arena, struct version *const out,
	struct error *const err)
{
	struct db_statement *const statement = db_prepare(db, SQL_VERSION_SEQUENCE, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, sequence);
	return find_row(db, statement, arena, out, err);
}

int version_add(struct db *const db, struct version *const version, struct error *const err)
{
	struct db_statement *const statement = db_prepare(db, SQL_VERSION_ADD, err);
	if (statement == NULL)
		return -1;
	db_bind_blob(statement, 1, span_of(version->id, VERSION_ID_BYTES));
	db_bind_i64(statement, 2, version->bucket);
	db_bind_blob(statement, 3, version->key);
	db_bind_i64(statement, 4, version->kind);
	db_bind_i64(statement, 5, (int64_t)version->size);
	db_bind_blob(statement, 6, span_text(version->etag));
	db_bind_blob(statement, 7, span_of(version->digest.bytes, sizeof(version->digest.bytes)));
	db_bind_blob(statement, 8, span_of(version->file_hash.bytes, CHUNK_ID_BYTES));
	db_bind_i64(statement, 9, version->modified_ms);
	db_bind_blob(statement, 10, version->headers);
	if (version->kind == VERSION_SEGMENTS)
		db_bind_i64(statement, 11, version->part_set);
	db_bind_i64(statement, 12, (int64_t)version->contents);
	db_bind_i64(statement, 13, (int64_t)version_sum(version, version->key, version->headers));
	if (db_execute(statement, err) != 0)
		return -1;
	version->sequence = db_last_id(db);
	version->is_current = true;
	return 0;
}

static int run_on_version(struct db *const db, const char *const sql, const int64_t sequence, struct error *const err)
{
	struct db_statement *const statement = db_prepare(db, sql, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, sequence);
	return db_execute(statement, err);
}

static int drop(struct db *const db, const struct version *const version, struct error *const err)
{
	const bool is_inline = version->kind == VERSION_INLINE;
	const int dropped = is_inline ? part_inline_drop(db, version->sequence, err) : part_set_drop(db, version->part_set, err);
	return dropped != 0 ? -1 : run_on_version(db, SQL_VERSION_REMOVE, version->sequence, err);
}

int version_retire(struct db *const db, const struct version *const version, struct error *const err)
{
	bool pinned = false;
	if (step_pin_holds(db, version->sequence, &pinned, err) != 0)
		return -1;
	return pinned ? run_on_version(db, SQL_VERSION_HIDE, version->sequence, err) : drop(db, version, err); /* invariant 6 */
}

int version_unpin(struct db *const db, const int64_t sequence, struct error *const err)
{
	struct version version;
	bool pinned = false;
	if (step_pin_holds(db, sequence, &pinned, err) != 0)
		return -1;
	if (pinned)
		return 0;
	const int got = version_find_sequence(db, sequence, NULL, &version, err);
	if (got <= 0 || version.is_current)
		return got < 0 ? -1 : 0;
	return drop(db, &version, err);
}

int version_any_in_bucket(struct db *const db, const int64_t bucket, bool *const out_any, struct error *const err)
{
	struct db_statement *const statement = db_prepare(db, SQL_VERSION_ANY, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, bucket);
	const int got = db_step(statement, err);
	db_reset(statement);
	*out_any = got == 1;
	return got < 0 ? -1 : 0;
}

struct db_statement *version_scan(struct db *const db, const int64_t bucket, const struct span from, struct error *const err)
{
	struct db_statement *const statement = db_prepare(db, SQL_VERSION_SCAN, err);
	if (statement == NULL)
		return NULL;
	db_bind_i64(statement, 1, bucket);
	db_bind_blob(statement, 2, from);
	return statement;
}

struct span version_scan_key(struct db_statement *const scan)
{
	return db_column_blob(scan, 0);
}

void version_scan_entry(struct db_statement *const scan, struct object_entry *const out)
{
	const struct span etag = span_slice(db_column_blob(scan, 2), 0, OBJECT_ETAG_BYTES - 1);
	out->size = (uint64_t)db_column_i64(scan, 1);
	memcpy(out->etag, etag.data, etag.len);
	out->etag[etag.len] = '\0';
	out->modified_ms = db_column_i64(scan, 3);
}
