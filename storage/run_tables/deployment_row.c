/* The column holds the deployment, a zero byte and the run's number in digits; up to version 0.1.0
 * it held the deployment alone. A deployment contains no control character. So the range from the
 * name up to the name followed by a byte 1, which is excluded, holds both spellings and the values
 * of no other deployment. */
#include "storage/run_tables/deployment_row.h"

#include <stdio.h>
#include <string.h>

static const char SQL_DEPLOYMENT_FIND[] =
	"SELECT buckets.name, runs.name FROM runs JOIN buckets ON buckets.id = runs.bucket WHERE runs.hot_load >= ?1 AND runs.hot_load < ?2"
	" AND runs.name IS NOT NULL AND (buckets.name = ?3 OR buckets.account = (SELECT id FROM accounts WHERE namespace = ?4))";
static const char SQL_DEPLOYMENT_OTHER[] =
	"SELECT 1 FROM runs JOIN buckets ON buckets.id = runs.bucket WHERE runs.hot_load >= ?1 AND runs.hot_load < ?2 AND runs.id <> ?3"
	" AND buckets.account = (SELECT account FROM buckets JOIN runs ON buckets.id = runs.bucket WHERE runs.id = ?3)";
static const char SQL_DEPLOYMENT_OF_BUCKET[] =
	"SELECT hot_load FROM runs WHERE bucket = ?1 AND hot_load IS NOT NULL";
static const char SQL_DEPLOYMENT_OF_ACCOUNT[] =
	"SELECT 1 FROM runs JOIN buckets ON buckets.id = runs.bucket WHERE runs.hot_load >= ?1 AND runs.hot_load < ?2 AND runs.bucket <> ?3"
	" AND buckets.account = ?4";

enum { NAME_END_BYTES = RUN_DEPLOYMENT_MAX_BYTES + 1 };

static struct span name_end(struct span deployment, uint8_t out[NAME_END_BYTES]);
static int check_moved(
	struct db *db, struct span deployment, int64_t bucket, int64_t account, struct error *err);

size_t deployment_row_column(
	const char *deployment, int64_t run, uint8_t out[DEPLOYMENT_COLUMN_BYTES])
{
	char text[DEPLOYMENT_COLUMN_BYTES];
	ASSERT(deployment[0] != '\0');
	const int len = snprintf(text, sizeof(text), "%s%c%lld", deployment, '\0', (long long)run);
	ASSERT(len > 0 && len < DEPLOYMENT_COLUMN_BYTES);
	memcpy(out, text, (size_t)len);
	return (size_t)len;
}

int deployment_row_find(struct db *db, struct span deployment, const struct deployment_place *among,
	struct arena *arena, struct run_ref *out, struct error *err)
{
	uint8_t end[NAME_END_BYTES];
	struct db_statement *const row = db_query(db, SQL_DEPLOYMENT_FIND, err, db_blob(deployment),
		db_blob(name_end(deployment, end)), db_blob(among->bucket),
		db_blob(among->account));
	const int got = db_step(row, err);
	if (got == 1)
		*out = run_named(arena_copy(arena, db_column_blob(row, 0)),
			arena_copy(arena, db_column_blob(row, 1)));
	db_reset(row);
	return got;
}

int deployment_row_check(struct db *db, int64_t run, const char *deployment, struct error *err)
{
	const struct span name = span_text(deployment);
	uint8_t end[NAME_END_BYTES];
	ASSERT(name.len > 0 && name.len <= RUN_DEPLOYMENT_MAX_BYTES);
	const int got = db_exists(db, SQL_DEPLOYMENT_OTHER, err, db_blob(name),
		db_blob(name_end(name, end)), db_i64(run));
	return got == 1
		? error_set(err, ERROR_EXISTS,
			  "The deployment '%s' is bound to another run of the account: empty that run's setting \"hot_load\" first.",
			  deployment)
		: got;
}

int deployment_row_check_move(struct db *db, int64_t bucket, int64_t account, struct error *err)
{
	struct db_statement *const scan =
		db_query(db, SQL_DEPLOYMENT_OF_BUCKET, err, db_i64(bucket));
	int got = -1;
	int result = 0;
	while (result == 0 && (got = db_step(scan, err)) == 1) {
		const struct span column = db_column_blob(scan, 0);
		const ptrdiff_t end = span_find(column, '\0');
		result = check_moved(db, span_slice(column, 0, end < 0 ? column.len : (size_t)end),
			bucket, account, err);
	}
	db_reset(scan);
	return result != 0 || got < 0 ? -1 : 0;
}

/* The excluded end of the range of a deployment. A name that is too long, which no run has, is
 * cut. */
static struct span name_end(struct span deployment, uint8_t out[NAME_END_BYTES])
{
	const struct span name = span_slice(deployment, 0, RUN_DEPLOYMENT_MAX_BYTES);
	memcpy(out, name.data, name.len);
	out[name.len] = 1;
	return span_of(out, name.len + 1);
}

static int check_moved(
	struct db *db, struct span deployment, int64_t bucket, int64_t account, struct error *err)
{
	uint8_t end[NAME_END_BYTES];
	const int got = db_exists(db, SQL_DEPLOYMENT_OF_ACCOUNT, err, db_blob(deployment),
		db_blob(name_end(deployment, end)), db_i64(bucket), db_i64(account));
	return got == 1
		? error_set(err, ERROR_EXISTS,
			  "Runs of both accounts have the deployment '%.*s' in their setting \"hot_load\".",
			  (int)deployment.len, (const char *)deployment.data)
		: got;
}
