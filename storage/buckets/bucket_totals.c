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
static const char SQL_TOTALS_DROP[] = "DELETE FROM bucket_totals WHERE bucket = ?1";

int bucket_totals_open(struct db *db, int64_t bucket, int64_t now_ms, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_TOTALS_OPEN, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, bucket);
	db_bind_i64(statement, 2, now_ms);
	return db_execute(statement, err);
}

int bucket_totals_add(struct db *db, int64_t bucket, int64_t files, int64_t bytes, int64_t now_ms,
	struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_TOTALS_ADD, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, bucket);
	db_bind_i64(statement, 2, files);
	db_bind_i64(statement, 3, bytes);
	db_bind_i64(statement, 4, now_ms);
	return db_execute(statement, err);
}

int bucket_totals_read(struct db *db, int64_t bucket, struct bucket_totals *out, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_TOTALS_READ, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, bucket);
	const int got = db_step(statement, err);
	*out = (struct bucket_totals){0};
	if (got == 1)
		*out = (struct bucket_totals){.files = db_column_i64(statement, 0),
			.bytes = db_column_i64(statement, 1),
			.updated_ms = db_column_i64(statement, 2)};
	db_reset(statement);
	return got < 0 ? -1 : 0;
}

int bucket_totals_sum(struct db *db, struct span owner, int64_t *out_bytes, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_TOTALS_SUM, err);
	if (statement == NULL)
		return -1;
	db_bind_blob(statement, 1, owner);
	const int got = db_step(statement, err);
	*out_bytes = got == 1 ? db_column_i64(statement, 0) : 0;
	db_reset(statement);
	return got < 0 ? -1 : 0;
}

int bucket_totals_drop(struct db *db, int64_t bucket, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_TOTALS_DROP, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, bucket);
	return db_execute(statement, err);
}
