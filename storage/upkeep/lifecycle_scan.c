#include "storage/upkeep/lifecycle_scan.h"

#include "base/arena.h"
#include "storage/buckets/bucket_document.h"

static const char SQL_NEXT_BUCKET[] =
	"SELECT bucket, document FROM bucket_documents WHERE kind = ?1 AND bucket > ?2 ORDER BY bucket LIMIT 1";
static const char SQL_CURRENT[] =
	"SELECT sequence, key, is_marker, size, modified_ms, tags FROM versions WHERE bucket = ?1 AND key > ?2 AND state = 1 ORDER BY key LIMIT ?3";
static const char SQL_OLDER_OF_KEY[] =
	"SELECT sequence, key, is_marker, size, coalesce(retired_ms, modified_ms), tags FROM versions WHERE bucket = ?1 AND key = ?2 AND state = 2"
	" AND sequence < ?3 ORDER BY sequence DESC LIMIT ?4";
static const char SQL_OLDER[] =
	"SELECT sequence, key, is_marker, size, coalesce(retired_ms, modified_ms), tags FROM versions WHERE bucket = ?1 AND key > ?2 AND state = 2"
	" ORDER BY key, sequence DESC LIMIT ?3";
static const char SQL_NEWER[] =
	"SELECT count(*) FROM (SELECT 1 FROM versions WHERE bucket = ?1 AND key = ?2 AND state = 2 AND sequence > ?3 LIMIT ?4) AS counted";

static int take_rows(
	struct db_statement *statement, struct lifecycle_scan *scan, struct error *err);

int lifecycle_scan_bucket(struct db *db, int64_t after, struct arena *arena, int64_t *out_bucket,
	struct span *out_document, struct error *err)
{
	struct db_statement *const row =
		db_query(db, SQL_NEXT_BUCKET, err, db_i64(BUCKET_LIFECYCLE), db_i64(after));
	const int got = db_step(row, err);
	if (got == 1) {
		*out_bucket = db_column_i64(row, 0);
		*out_document = arena_copy(arena, db_column_blob(row, 1));
	}
	db_reset(row);
	return got;
}

int lifecycle_scan_current(struct db *db, struct lifecycle_scan *scan, struct error *err)
{
	struct db_statement *const statement = db_query(db, SQL_CURRENT, err, db_i64(scan->bucket),
		db_blob(scan->from->key), db_i64((int64_t)scan->limit));
	scan->count = 0;
	return take_rows(statement, scan, err);
}

/* First the rest of the key that the last slice ended in, then the keys behind it. */
int lifecycle_scan_older(struct db *db, struct lifecycle_scan *scan, struct error *err)
{
	const struct db_value key = db_blob(scan->from->key);
	const struct db_value most = db_i64((int64_t)scan->limit);
	struct db_statement *statement = db_query(db, SQL_OLDER_OF_KEY, err, db_i64(scan->bucket),
		key, db_i64(scan->from->sequence), most);
	scan->count = 0;
	if (take_rows(statement, scan, err) != 0)
		return -1;
	if (scan->count == scan->limit)
		return 0;
	statement = db_query(db, SQL_OLDER, err, db_i64(scan->bucket), key, most);
	return take_rows(statement, scan, err);
}

int lifecycle_scan_newer(
	struct db *db, const struct lifecycle_newer *newer, uint32_t *out, struct error *err)
{
	int64_t count = 0;
	if (db_find_i64(db, SQL_NEWER, &count, err, db_i64(newer->bucket), db_blob(newer->key),
		    db_i64(newer->sequence), db_i64(newer->most)) != 1)
		return -1;
	*out = (uint32_t)count;
	return 0;
}

static int take_rows(struct db_statement *statement, struct lifecycle_scan *scan, struct error *err)
{
	int got = 0;
	ASSERT(scan->rows != NULL && scan->count <= scan->limit);
	while (scan->count < scan->limit && (got = db_step(statement, err)) == 1) {
		struct lifecycle_row *const row = &scan->rows[scan->count++];
		row->sequence = db_column_i64(statement, 0);
		row->key = arena_copy(scan->arena, db_column_blob(statement, 1));
		row->is_marker = db_column_i64(statement, 2) != 0;
		row->size = (uint64_t)db_column_i64(statement, 3);
		row->since_ms = db_column_i64(statement, 4);
		row->tags = arena_copy(scan->arena, db_column_blob(statement, 5));
	}
	db_reset(statement);
	if (got >= 0 && arena_overflowed(scan->arena))
		return error_set(err, ERROR_NO_MEMORY,
			"The memory for a slice of a bucket's versions ran out.");
	return got < 0 ? -1 : 0;
}
