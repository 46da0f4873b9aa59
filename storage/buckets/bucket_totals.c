#include "storage/buckets/bucket_totals.h"

static const char SQL_TOTALS_OPEN[] =
	"INSERT INTO bucket_totals (bucket, files, bytes, updated_ms) VALUES (?1, 0, 0, ?2)";
static const char SQL_TOTALS_ADD[] =
	"UPDATE bucket_totals SET files = files + ?2, bytes = bytes + ?3, updated_ms = CASE WHEN updated_ms < ?4 THEN ?4 ELSE updated_ms END"
	" WHERE bucket = ?1";
static const char SQL_TOTALS_READ[] =
	"SELECT files, bytes, updated_ms FROM bucket_totals WHERE bucket = ?1";
static const char SQL_TOTALS_SUM[] =
	"SELECT COALESCE(SUM(t.bytes), 0) FROM bucket_totals t JOIN buckets b ON b.id = t.bucket JOIN accounts a ON a.id = b.account WHERE a.namespace = ?1";
static const char SQL_TOTALS_SUM_ALL[] = "SELECT COALESCE(SUM(bytes), 0) FROM bucket_totals";
static const char SQL_TOTALS_DROP[] = "DELETE FROM bucket_totals WHERE bucket = ?1";

int bucket_totals_open(struct db *db, int64_t bucket, int64_t now_ms, struct error *err)
{
	return db_run(db, SQL_TOTALS_OPEN, err, db_i64(bucket), db_i64(now_ms));
}

int bucket_totals_add(struct db *db, int64_t bucket, int64_t files, int64_t bytes, int64_t now_ms,
	struct error *err)
{
	return db_run(db, SQL_TOTALS_ADD, err, db_i64(bucket), db_i64(files), db_i64(bytes),
		db_i64(now_ms));
}

int bucket_totals_read(struct db *db, int64_t bucket, struct bucket_totals *out, struct error *err)
{
	struct db_statement *const row = db_query(db, SQL_TOTALS_READ, err, db_i64(bucket));
	const int got = db_step(row, err);
	*out = (struct bucket_totals){0};
	if (got == 1)
		*out = (struct bucket_totals){.files = db_column_i64(row, 0),
			.bytes = db_column_i64(row, 1),
			.updated_ms = db_column_i64(row, 2)};
	db_reset(row);
	return got < 0 ? -1 : 0;
}

int bucket_totals_sum(struct db *db, struct span owner, int64_t *out_bytes, struct error *err)
{
	*out_bytes = 0;
	return db_find_i64(db, SQL_TOTALS_SUM, out_bytes, err, db_blob(owner)) < 0 ? -1 : 0;
}

int bucket_totals_sum_all(struct db *db, uint64_t *out_bytes, struct error *err)
{
	int64_t bytes = 0;
	const int found = db_find_i64(db, SQL_TOTALS_SUM_ALL, &bytes, err);
	*out_bytes = (uint64_t)bytes;
	return found < 0 ? -1 : 0;
}

int bucket_totals_drop(struct db *db, int64_t bucket, struct error *err)
{
	return db_run(db, SQL_TOTALS_DROP, err, db_i64(bucket));
}
