/* A row has a checksum over the fields that never change. A damaged row must not stop what works
 * through the table in order (the sweep, the removal of made files): take_one removes it there. The
 * part set that it names is released only if the set's own sum proves that the row meant this set;
 * otherwise the set stays and costs space, because a wrong release would lose bytes of others. */
#include "storage/files/xet_file.h"

#include <string.h>

#include "base/buffer.h"
#include "storage/db/row_sum.h"
#include "storage/versions/part.h"

enum { SWEEP_FILES = 16, SWEEP_GRANTS = 500 }; /* a file costs up to PART_DROP_ROWS more rows */
enum { DAMAGED_HASH_BYTES = 1024 * 1024, ROW_DAMAGED = 2 };

#define FILE_COLUMNS "hash, size, part_set, contents, is_made, expires_ms, sum"

static const char SQL_FILE_FIND[] = "SELECT " FILE_COLUMNS " FROM xet_files WHERE hash = ?1";
static const char SQL_FILE_ADD[] =
	"INSERT INTO xet_files (" FILE_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
static const char SQL_FILE_TOUCH[] =
	"UPDATE xet_files SET is_made = CASE WHEN ?2 = 0 THEN 0 ELSE is_made END,"
	" expires_ms = CASE WHEN expires_ms < ?3 THEN ?3 ELSE expires_ms END WHERE hash = ?1";
static const char SQL_FILE_REMOVE[] = "DELETE FROM xet_files WHERE hash = ?1";
static const char SQL_FILE_EXPIRED[] =
	"SELECT " FILE_COLUMNS " FROM xet_files WHERE expires_ms <= ?1 ORDER BY expires_ms LIMIT 1";
#define FILE_UNUSED \
	"xet_files x JOIN part_sets p ON p.id = x.part_set WHERE +x.is_made = 0 AND p.holders = 1"
static const char SQL_FILE_UNUSED_BYTES[] = "SELECT COALESCE(SUM(x.size), 0) FROM " FILE_UNUSED;
static const char SQL_FILE_UNUSED_SLICE[] =
	"SELECT count(*), max(x.hash), coalesce(sum(x.size) FILTER (WHERE x.is_made = 0 AND p.holders = 1), 0),"
	" coalesce(max(x.expires_ms) FILTER (WHERE x.is_made = 0 AND p.holders = 1), 0) FROM"
	" (SELECT hash, size, part_set, is_made, expires_ms FROM xet_files WHERE hash > ?1 ORDER BY hash LIMIT ?2) x"
	" LEFT JOIN part_sets p ON p.id = x.part_set";
/* A set that a shard is still writing has no sum yet. A hash of another length is damaged; the
 * sweep removes its row when it has expired. */
static const char SQL_FILE_UNUSED_LIST[] =
	"SELECT x.hash FROM " FILE_UNUSED
	" AND x.contents <> 0 AND x.hash > ?1 AND length(x.hash) = 32 ORDER BY x.hash LIMIT ?2";
static const char SQL_FILE_UNUSED_FIND[] =
	"SELECT x.hash, x.size, x.part_set, x.contents, x.is_made, x.expires_ms, x.sum FROM " FILE_UNUSED
	" AND x.contents <> 0 AND x.hash = ?1";
static const char SQL_FILE_MADE_BYTES[] = "SELECT sum(size) FROM xet_files WHERE is_made = 1";
static const char SQL_FILE_MADE_OLDEST[] =
	"SELECT " FILE_COLUMNS " FROM xet_files WHERE is_made = 1 ORDER BY expires_ms LIMIT 1";
static const char SQL_GRANT_PUT[] =
	"INSERT INTO xet_grants (file, bucket, account, expires_ms) VALUES (?1, ?2, ?3, ?4)"
	" ON CONFLICT (file, bucket, account) DO UPDATE SET expires_ms = excluded.expires_ms WHERE xet_grants.expires_ms < excluded.expires_ms";
static const char SQL_GRANT_VALID[] =
	"SELECT 1 FROM xet_grants WHERE file = ?1 AND bucket = ?2 AND account = ?3 AND expires_ms > ?4";
static const char SQL_GRANT_EXPIRED[] = "SELECT 1 FROM xet_grants WHERE expires_ms <= ?1 LIMIT 1";
static const char SQL_GRANT_SWEEP[] =
	"DELETE FROM xet_grants WHERE (file, bucket, account) IN"
	" (SELECT file, bucket, account FROM xet_grants WHERE expires_ms <= ?1 ORDER BY expires_ms LIMIT ?2)";

static int read_one(
	struct db *db, struct db_statement *statement, struct xet_file *out, struct error *err);
static int read_file(
	struct db *db, struct db_statement *statement, struct xet_file *out, struct error *err);
static uint64_t file_sum(const struct xet_file *file);
static struct span hash_span(const struct chunk_id *hash);
static int read_total(struct db *db, const char *sql, uint64_t *out_bytes, struct error *err);
static int take_one(struct db *db, struct db_statement *statement, struct xet_file *out,
	struct xet_file_damage *damage, struct error *err);
static int remove_damaged(struct db *db, const struct xet_file *file, struct span hash,
	struct xet_file_damage *damage, struct error *err);
static int means_its_set(
	struct db *db, const struct xet_file *file, bool *out_means, struct error *err);
static int any(struct db_statement *statement, bool *out_any, struct error *err);
static int sweep_files(struct db *db, int64_t now_ms, bool *out_found,
	struct xet_file_damage *damage, struct error *err);
static int sweep_grants(struct db *db, int64_t now_ms, bool *out_found, struct error *err);

int xet_file_row_find(
	struct db *db, const struct chunk_id *hash, struct xet_file *out, struct error *err)
{
	return read_one(db, db_query(db, SQL_FILE_FIND, err, db_blob(hash_span(hash))), out, err);
}

int xet_file_row_add(struct db *db, const struct xet_file *file, struct error *err)
{
	ASSERT(file->size > 0 && file->part_set > 0);
	return db_run(db, SQL_FILE_ADD, err, db_blob(hash_span(&file->hash)),
		db_i64((int64_t)file->size), db_i64(file->part_set),
		db_i64((int64_t)file->contents), db_i64(file->is_made), db_i64(file->expires_ms),
		db_i64((int64_t)file_sum(file)));
}

int xet_file_row_touch(struct db *db, const struct chunk_id *hash, bool is_made, int64_t expires_ms,
	struct error *err)
{
	return db_run(db, SQL_FILE_TOUCH, err, db_blob(hash_span(hash)), db_i64(is_made),
		db_i64(expires_ms));
}

int xet_file_made_bytes(struct db *db, uint64_t *out_bytes, struct error *err)
{
	return read_total(db, SQL_FILE_MADE_BYTES, out_bytes, err);
}

int xet_file_unused_bytes(struct db *db, uint64_t *out_bytes, struct error *err)
{
	return read_total(db, SQL_FILE_UNUSED_BYTES, out_bytes, err);
}

int xet_file_unused_slice(
	struct db *db, size_t rows, struct xet_file_unused *total, struct error *err)
{
	const struct span after = span_of(total->after, sizeof(total->after));
	struct db_statement *const sums =
		db_query(db, SQL_FILE_UNUSED_SLICE, err, db_blob(after), db_i64((int64_t)rows));
	const int got = db_step(sums, err);
	if (got == 1) {
		const struct span last = db_column_blob(sums, 1);
		const int64_t until_ms = db_column_i64(sums, 3);
		total->ended = db_column_i64(sums, 0) < (int64_t)rows || last.len != after.len;
		total->bytes += (uint64_t)db_column_i64(sums, 2);
		if (until_ms > total->until_ms)
			total->until_ms = until_ms;
		if (!total->ended)
			memcpy(total->after, last.data, sizeof(total->after));
	}
	db_reset(sums);
	return got < 0 ? -1 : 0;
}

int xet_file_row_forget(struct db *db, const struct chunk_id *hash, struct error *err)
{
	return db_run(db, SQL_FILE_REMOVE, err, db_blob(hash_span(hash)));
}

int xet_file_row_remove(struct db *db, const struct xet_file *file, struct error *err)
{
	return xet_file_row_forget(db, &file->hash, err) != 0
		? -1
		: part_set_drop(db, file->part_set, err);
}

int xet_file_made_oldest(
	struct db *db, struct xet_file *out, struct xet_file_damage *damage, struct error *err)
{
	int got = ROW_DAMAGED;
	while (got == ROW_DAMAGED)
		got = take_one(db, db_query(db, SQL_FILE_MADE_OLDEST, err), out, damage, err);
	return got;
}

int xet_file_list_unused(struct db *db, const struct chunk_id *after, struct chunk_id *hashes,
	size_t capacity, size_t *out_count, struct error *err)
{
	struct db_statement *const statement = db_query(db, SQL_FILE_UNUSED_LIST, err,
		db_blob(hash_span(after)), db_i64((int64_t)capacity));
	int got;
	ASSERT(capacity >= 1);
	*out_count = 0;
	while ((got = db_step(statement, err)) == 1)
		memcpy(hashes[(*out_count)++].bytes, db_column_blob(statement, 0).data,
			CHUNK_ID_BYTES);
	db_reset(statement);
	return got;
}

int xet_file_end_unused(struct db *db, const struct chunk_id *hash, struct xet_file_damage *damage,
	struct error *err)
{
	struct xet_file file;
	struct db_statement *const statement =
		db_query(db, SQL_FILE_UNUSED_FIND, err, db_blob(hash_span(hash)));
	const int got = take_one(db, statement, &file, damage, err);
	return got == 1 ? xet_file_row_remove(db, &file, err) : got < 0 ? -1 : 0;
}

int xet_grant_row_put(
	struct db *db, const struct xet_grant *grant, int64_t expires_ms, struct error *err)
{
	return db_run(db, SQL_GRANT_PUT, err, db_blob(hash_span(grant->file)),
		db_i64(grant->bucket), db_blob(grant->account), db_i64(expires_ms));
}

int xet_grant_row_valid(struct db *db, const struct xet_grant *grant, int64_t now_ms,
	bool *out_valid, struct error *err)
{
	struct db_statement *const statement =
		db_query(db, SQL_GRANT_VALID, err, db_blob(hash_span(grant->file)),
			db_i64(grant->bucket), db_blob(grant->account), db_i64(now_ms));
	return any(statement, out_valid, err);
}

int xet_file_sweep(struct db *db, int64_t now_ms, bool *out_found, struct xet_file_damage *damage,
	struct error *err)
{
	*out_found = false;
	if (sweep_files(db, now_ms, out_found, damage, err) != 0)
		return -1;
	return *out_found ? 0 : sweep_grants(db, now_ms, out_found, err);
}

int xet_file_sweep_has_work(struct db *db, int64_t now_ms, bool *out_found, struct error *err)
{
	const struct db_value now = db_i64(now_ms);
	if (any(db_query(db, SQL_FILE_EXPIRED, err, now), out_found, err) != 0)
		return -1;
	return *out_found ? 0 : any(db_query(db, SQL_GRANT_EXPIRED, err, now), out_found, err);
}

void xet_file_tell_damage(const struct store *store, const struct xet_file_damage *damage)
{
	if (damage->rows == 0)
		return;
	metrics_add(store_metrics(store), METRIC_ROWS_DAMAGED, (int64_t)damage->rows);
	log_failure(store_log(store), LOG_WARNING, NULL, "sweep", &damage->last);
}

/* Reads the row that the query gives, if any. */
static int read_one(
	struct db *db, struct db_statement *statement, struct xet_file *out, struct error *err)
{
	int got = db_step(statement, err);
	if (got == 1)
		got = read_file(db, statement, out, err);
	db_reset(statement);
	return got;
}

static int read_file(
	struct db *db, struct db_statement *statement, struct xet_file *out, struct error *err)
{
	const struct span hash = db_column_blob(statement, 0);
	*out = (struct xet_file){
		.size = (uint64_t)db_column_i64(statement, 1),
		.part_set = db_column_i64(statement, 2),
		.contents = (uint64_t)db_column_i64(statement, 3),
		.is_made = db_column_i64(statement, 4) != 0,
		.expires_ms = db_column_i64(statement, 5),
	};
	if (hash.len == CHUNK_ID_BYTES)
		memcpy(out->hash.bytes, hash.data, CHUNK_ID_BYTES);
	if (hash.len == CHUNK_ID_BYTES && (uint64_t)db_column_i64(statement, 6) == file_sum(out))
		return 1;
	return error_set(err, ERROR_CORRUPT, "%s: a row of xet_files is damaged.", db_path(db));
}

/* The sum of the fields that never change. */
static uint64_t file_sum(const struct xet_file *file)
{
	uint64_t sum = row_sum_bytes(0, hash_span(&file->hash));
	sum = row_sum_number(sum, (int64_t)file->size);
	sum = row_sum_number(sum, file->part_set);
	return row_sum_number(sum, (int64_t)file->contents);
}

static struct span hash_span(const struct chunk_id *hash)
{
	return span_of(hash->bytes, CHUNK_ID_BYTES);
}

static int read_total(struct db *db, const char *sql, uint64_t *out_bytes, struct error *err)
{
	int64_t bytes = 0;
	const int got = db_find_i64(db, sql, &bytes, err);
	*out_bytes = (uint64_t)bytes;
	return got < 0 ? -1 : 0;
}

/* As read_one. ROW_DAMAGED: the row was damaged and has been removed. */
static int take_one(struct db *db, struct db_statement *statement, struct xet_file *out,
	struct xet_file_damage *damage, struct error *err)
{
	struct error why = {0};
	struct buffer hash;
	int got = db_step(statement, err);
	if (got != 1) {
		db_reset(statement);
		return got;
	}
	buffer_init(&hash, DAMAGED_HASH_BYTES);
	buffer_add_span(&hash, db_column_blob(statement, 0));
	got = read_file(db, statement, out, &why);
	db_reset(statement);
	if (got < 0)
		got = remove_damaged(db, out, buffer_span(&hash), damage, err) != 0 ? -1
										    : ROW_DAMAGED;
	buffer_release(&hash);
	return got;
}

/* Fails for a row that cannot be found by its own hash: only mending the catalog helps there. */
static int remove_damaged(struct db *db, const struct xet_file *file, struct span hash,
	struct xet_file_damage *damage, struct error *err)
{
	bool owns_set;
	if (means_its_set(db, file, &owns_set, err) != 0 ||
		db_run(db, SQL_FILE_REMOVE, err, db_blob(hash)) != 0)
		return -1;
	if (db_changes(db) != 1)
		return error_set(err, ERROR_CORRUPT,
			"%s: a row of xet_files is damaged and cannot be removed.", db_path(db));
	if (owns_set && part_set_drop(db, file->part_set, err) != 0)
		return -1;
	damage->rows++;
	error_set(&damage->last, ERROR_CORRUPT,
		"%s: a damaged row of xet_files was removed; the part set %lld that it names %s.",
		db_path(db), (long long)file->part_set,
		owns_set ? "was released" : "stays, because nothing proves that it was the row's");
	return 0;
}

/* Whether a damaged row really means the part set that it names. The sum of a set covers the set's
 * number, so a row with a matching number and sum means this set, whatever else in it is wrong. A
 * page that cannot be read proves neither. */
static int means_its_set(
	struct db *db, const struct xet_file *file, bool *out_means, struct error *err)
{
	struct part_range nothing = {0};
	struct error why = {0};
	*out_means = file->part_set > 0 &&
		part_set_load(db, file->part_set, 0, file->contents, &nothing, &why) == 0;
	if (why.kind != ERROR_DAMAGED)
		return 0;
	*err = why;
	return -1;
}

/* Whether the query gives a row. */
static int any(struct db_statement *statement, bool *out_any, struct error *err)
{
	const int got = db_step(statement, err);
	*out_any = got == 1;
	db_reset(statement);
	return got < 0 ? -1 : 0;
}

static int sweep_files(struct db *db, int64_t now_ms, bool *out_found,
	struct xet_file_damage *damage, struct error *err)
{
	struct xet_file file;
	for (int i = 0; i < SWEEP_FILES; i++) {
		struct db_statement *const statement =
			db_query(db, SQL_FILE_EXPIRED, err, db_i64(now_ms));
		const int got = take_one(db, statement, &file, damage, err);
		if (got <= 0)
			return got;
		*out_found = true;
		if (got == 1 && xet_file_row_remove(db, &file, err) != 0)
			return -1;
	}
	return 0;
}

static int sweep_grants(struct db *db, int64_t now_ms, bool *out_found, struct error *err)
{
	if (db_run(db, SQL_GRANT_SWEEP, err, db_i64(now_ms), db_i64(SWEEP_GRANTS)) != 0)
		return -1;
	*out_found = db_changes(db) > 0;
	return 0;
}
