#include "storage/run_tables/step_anchor_row.h"

static const char SQL_WANTED[] =
	"SELECT " STEP_COLUMNS ", run FROM steps WHERE state = 0 AND wants_made IS NOT NULL"
	" AND verified <> 2 AND (made IS NULL OR (wants_made = 2 AND made > 0)) AND id > ?1 ORDER BY id LIMIT 1";
static const char SQL_MADE[] =
	"SELECT " STEP_COLUMNS
	", run FROM steps WHERE state = 0 AND made IS NOT NULL AND id > ?1 ORDER BY id LIMIT 1";
static const char SQL_WHOLE[] =
	"SELECT " STEP_COLUMNS " FROM steps WHERE run = ?1 AND step < ?2 AND state = 0"
	" AND (has_anchor = 1 OR made IS NOT NULL) AND verified IN (1, 3) ORDER BY step DESC";
static const char SQL_MADE_BELOW[] =
	"SELECT " STEP_COLUMNS
	" FROM steps WHERE run = ?1 AND step < ?2 AND state = 0 AND made IS NOT NULL";
static const char SQL_WANT[] = "UPDATE steps SET wants_made = ?2 WHERE id = ?1";
static const char SQL_WANT_NONE_BELOW[] =
	"UPDATE steps SET wants_made = NULL"
	" WHERE run = ?1 AND step < ?2 AND state = 0 AND wants_made IS NOT NULL AND wants_made = 1"
	" AND NOT EXISTS (SELECT 1 FROM pins WHERE pins.run = steps.run AND pins.step = steps.step)";
static const char SQL_AWAITS_STORED[] =
	"SELECT 1 FROM steps"
	" WHERE run = ?1 AND step > ?2 AND step <= ?3 AND state = 0 AND wants_made IS NOT NULL AND wants_made = 2 LIMIT 1";
static const char SQL_SET_MADE[] =
	"UPDATE steps SET made = ?2, made_bytes = ?3, made_until_ms = ?4 WHERE id = ?1";

static int first_with_run(
	struct db_statement *statement, int64_t *out_run, struct step_row *out, struct error *err);
static int64_t bound(uint64_t step);

int step_anchor_row_find_wanted(
	struct db *db, int64_t after, int64_t *out_run, struct step_row *out, struct error *err)
{
	return first_with_run(db_query(db, SQL_WANTED, err, db_i64(after)), out_run, out, err);
}

int step_anchor_row_find_made(
	struct db *db, int64_t after, int64_t *out_run, struct step_row *out, struct error *err)
{
	return first_with_run(db_query(db, SQL_MADE, err, db_i64(after)), out_run, out, err);
}

struct db_statement *step_anchor_row_scan_made(
	struct db *db, int64_t run, uint64_t step, struct error *err)
{
	return db_query(db, SQL_MADE_BELOW, err, db_i64(run), db_i64(bound(step)));
}

struct db_statement *step_anchor_row_scan_whole(
	struct db *db, int64_t run, uint64_t step, struct error *err)
{
	return db_query(db, SQL_WHOLE, err, db_i64(run), db_i64(bound(step)));
}

int step_anchor_row_want(struct db *db, int64_t id, enum step_wants wants, struct error *err)
{
	return db_run(
		db, SQL_WANT, err, db_i64(id), db_i64_or_null(wants != STEP_WANTS_NONE, wants));
}

int step_anchor_row_awaits_stored(
	struct db *db, int64_t run, uint64_t from, uint64_t to, struct error *err)
{
	ASSERT(from <= to);
	return db_exists(
		db, SQL_AWAITS_STORED, err, db_i64(run), db_i64(bound(from)), db_i64(bound(to)));
}

int step_anchor_row_want_none_below(struct db *db, int64_t run, uint64_t step, struct error *err)
{
	return db_run(db, SQL_WANT_NONE_BELOW, err, db_i64(run), db_i64(bound(step)));
}

int step_anchor_row_set_made(struct db *db, const struct step_row *row, struct error *err)
{
	ASSERT(row->id > 0);
	return db_run(db, SQL_SET_MADE, err, db_i64(row->id),
		db_i64_or_null(row->has_made, row->made_depth),
		db_i64_or_null(row->has_made, (int64_t)row->made_bytes),
		db_i64_or_null(row->has_made, row->made_until_ms));
}

static int first_with_run(
	struct db_statement *statement, int64_t *out_run, struct step_row *out, struct error *err)
{
	const int got = db_step(statement, err);
	if (got == 1) {
		step_row_read(statement, out);
		*out_run = db_column_i64(statement, STEP_COLUMN_COUNT);
	}
	db_reset(statement);
	return got;
}

/* No row has a step above INT64_MAX, so a higher number may be cut. */
static int64_t bound(uint64_t step)
{
	return step > INT64_MAX ? INT64_MAX : (int64_t)step;
}
