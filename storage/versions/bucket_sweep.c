#include "storage/versions/bucket_sweep.h"

#include "storage/versions/version.h"

enum { SLICE_VERSIONS = 200 };

static const char SQL_SWEEP_MARK[] = "INSERT INTO gone_buckets (bucket) VALUES (?1)";
static const char SQL_SWEEP_OLDER[] =
	"SELECT sequence FROM versions WHERE bucket = ?1 AND state = 2 LIMIT 1";
static const char SQL_SWEEP_CURRENT[] =
	"SELECT sequence FROM versions WHERE bucket = ?1 AND state = 1 LIMIT 1";

int bucket_sweep_mark(struct db *db, int64_t bucket, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_SWEEP_MARK, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, bucket);
	return db_execute(statement, err);
}

/* 1 found, 0, -1. Each state has an index that begins with the bucket. */
static int find(struct db *db, const char *sql, int64_t bucket, int64_t *out, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, sql, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, bucket);
	const int got = db_step(statement, err);
	if (got == 1)
		*out = db_column_i64(statement, 0);
	db_reset(statement);
	return got;
}

int bucket_sweep_versions(struct db *db, int64_t bucket, bool *out_more, struct error *err)
{
	*out_more = true;
	for (int i = 0; i < SLICE_VERSIONS; i++) {
		int64_t sequence = 0;
		int found = find(db, SQL_SWEEP_OLDER, bucket, &sequence, err);
		if (found == 0)
			found = find(db, SQL_SWEEP_CURRENT, bucket, &sequence, err);
		*out_more = found == 1;
		if (found != 1)
			return found;
		if (version_abandon(db, sequence, err) != 0)
			return -1;
	}
	return 0;
}
