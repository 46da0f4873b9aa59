#include "storage/run_tables/fold_row.h"

#include <string.h>

#include "storage/run_tables/step_row.h"

#define FOLD_COLUMNS "id, run, from_step, to_step, kind, state, bytes, used_ms, format"

static const char SQL_FOLD_FIND[] =
	"SELECT " FOLD_COLUMNS " FROM folds WHERE run = ?1 AND to_step = ?2 AND from_step = ?3";
static const char SQL_FOLD_FIND_ID[] = "SELECT " FOLD_COLUMNS " FROM folds WHERE id = ?1";
static const char SQL_FOLD_WANTED_DIRECT[] =
	"SELECT " FOLD_COLUMNS
	" FROM folds WHERE state = 0 AND kind = 1 AND id > ?1 ORDER BY id LIMIT 1";
static const char SQL_FOLD_WANTED_SKIP[] =
	"SELECT " FOLD_COLUMNS
	" FROM folds WHERE state = 0 AND kind = 0 AND id < ?1 ORDER BY id DESC LIMIT 1";
static const char SQL_FOLD_RELEASING[] = "SELECT id FROM folds WHERE state = 3 ORDER BY id LIMIT 1";
static const char SQL_FOLD_UNUSED[] =
	"SELECT id FROM folds WHERE kind = 1 AND state <> 3 AND used_ms < ?1 ORDER BY used_ms LIMIT 1";
static const char SQL_FOLD_OF_RUN[] =
	"SELECT id FROM folds WHERE run = ?1 ORDER BY to_step LIMIT 1";
static const char SQL_FOLD_SCAN[] =
	"SELECT " FOLD_COLUMNS
	" FROM folds WHERE run = ?1 AND state = 1 AND to_step <= ?2 ORDER BY to_step DESC, from_step DESC";
static const char SQL_FOLD_WANT[] =
	"INSERT INTO folds (run, from_step, to_step, kind, state, format, bytes, used_ms) VALUES (?1, ?2, ?3, ?4, 0, ?5, 0, ?6)"
	" ON CONFLICT DO NOTHING";
static const char SQL_FOLD_MADE[] =
	"UPDATE folds SET state = 1, format = ?2, bytes = ?3 WHERE id = ?1";
static const char SQL_FOLD_SET_STATE[] = "UPDATE folds SET state = ?2 WHERE id = ?1";
static const char SQL_FOLD_SET_USED[] = "UPDATE folds SET used_ms = ?2 WHERE id = ?1";
static const char SQL_FOLD_RELEASE_FROM[] =
	"UPDATE folds SET state = 3 WHERE run = ?1 AND from_step = ?2";
static const char SQL_FOLD_RELEASE_TO[] =
	"UPDATE folds SET state = 3 WHERE run = ?1 AND to_step = ?2";
static const char SQL_FOLD_RELEASE_SURPLUS[] =
	"UPDATE folds SET state = 3 WHERE id IN (SELECT id FROM folds WHERE run = ?1 AND kind = 1 AND state <> 3"
	" ORDER BY used_ms DESC, id DESC LIMIT 1000 OFFSET ?2)";
static const char SQL_FOLD_COUNT_HELD[] =
	"SELECT COUNT(*) FROM folds WHERE run = ?1 AND kind = 1 AND state <> 3 AND used_ms > ?2";
static const char SQL_FOLD_REMOVE[] = "DELETE FROM folds WHERE id = ?1";

void fold_row_read(struct db_statement *scan, struct fold_row *out)
{
	memset(out, 0, sizeof(*out));
	out->id = db_column_i64(scan, 0);
	out->run = db_column_i64(scan, 1);
	out->from = (uint64_t)db_column_i64(scan, 2);
	out->to = (uint64_t)db_column_i64(scan, 3);
	out->kind = (enum fold_kind)db_column_i64(scan, 4);
	out->state = (enum fold_state)db_column_i64(scan, 5);
	out->bytes = (uint64_t)db_column_i64(scan, 6);
	out->used_ms = db_column_i64(scan, 7);
	const struct span format = db_column_blob(scan, 8);
	if (format.len > 0 && format.len < sizeof(out->format))
		memcpy(out->format, format.data, format.len);
}

/* Steps above INT64_MAX are in no row. */
static int64_t bound(uint64_t step)
{
	return step > INT64_MAX ? INT64_MAX : (int64_t)step;
}

static int first_row(struct db_statement *statement, struct fold_row *out, struct error *err)
{
	const int got = db_step(statement, err);
	if (got == 1)
		fold_row_read(statement, out);
	db_reset(statement);
	return got;
}

static int first_id(struct db_statement *statement, int64_t *out, struct error *err)
{
	const int got = db_step(statement, err);
	if (got == 1)
		*out = db_column_i64(statement, 0);
	db_reset(statement);
	return got;
}

int fold_row_find(struct db *db, int64_t run, uint64_t from, uint64_t to, struct fold_row *out,
	struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_FOLD_FIND, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, run);
	db_bind_i64(statement, 2, bound(to));
	db_bind_i64(statement, 3, bound(from));
	return first_row(statement, out, err);
}

int fold_row_find_id(struct db *db, int64_t id, struct fold_row *out, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_FOLD_FIND_ID, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, id);
	return first_row(statement, out, err);
}

int fold_row_find_wanted(
	struct db *db, enum fold_kind kind, int64_t limit, struct fold_row *out, struct error *err)
{
	struct db_statement *const statement = db_prepare(
		db, kind == FOLD_DIRECT ? SQL_FOLD_WANTED_DIRECT : SQL_FOLD_WANTED_SKIP, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, limit);
	return first_row(statement, out, err);
}

int fold_row_find_releasing(struct db *db, int64_t *out_id, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_FOLD_RELEASING, err);
	return statement == NULL ? -1 : first_id(statement, out_id, err);
}

/* The id that a statement with one number gives. */
static int find_id(
	struct db *db, const char *sql, int64_t number, int64_t *out_id, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, sql, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, number);
	return first_id(statement, out_id, err);
}

int fold_row_find_unused(struct db *db, int64_t before_ms, int64_t *out_id, struct error *err)
{
	return find_id(db, SQL_FOLD_UNUSED, before_ms, out_id, err);
}

int fold_row_find_of_run(struct db *db, int64_t run, int64_t *out_id, struct error *err)
{
	return find_id(db, SQL_FOLD_OF_RUN, run, out_id, err);
}

struct db_statement *fold_row_scan(struct db *db, int64_t run, uint64_t to, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_FOLD_SCAN, err);
	if (statement == NULL)
		return NULL;
	db_bind_i64(statement, 1, run);
	db_bind_i64(statement, 2, bound(to));
	return statement;
}

int fold_row_want(struct db *db, const struct fold_row *row, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_FOLD_WANT, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, row->run);
	db_bind_i64(statement, 2, bound(row->from));
	db_bind_i64(statement, 3, bound(row->to));
	db_bind_i64(statement, 4, row->kind);
	db_bind_blob(statement, 5, span_text(""));
	db_bind_i64(statement, 6, row->used_ms);
	return db_execute(statement, err);
}

int fold_row_want_skips(
	struct db *db, int64_t run, uint64_t step, int64_t now_ms, struct error *err)
{
	static const uint64_t spans[] = {4, 16};
	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
		struct step_row from;
		if (step == 0 || step % spans[i] != 0)
			continue;
		const struct fold_row row = {.run = run,
			.from = step - spans[i],
			.to = step,
			.kind = FOLD_SKIP,
			.used_ms = now_ms};
		const int found = step_row_find(db, run, row.from, &from, err);
		if (found < 0 ||
			(found == 1 && from.state == STEP_KEPT &&
				fold_row_want(db, &row, err) != 0))
			return -1;
	}
	return 0;
}

int fold_row_set_made(
	struct db *db, int64_t id, struct span format, uint64_t bytes, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_FOLD_MADE, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, id);
	db_bind_blob(statement, 2, format);
	db_bind_i64(statement, 3, bound(bytes));
	return db_execute(statement, err);
}

static int run_with(
	struct db *db, const char *sql, int64_t first, int64_t second, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, sql, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, first);
	db_bind_i64(statement, 2, second);
	return db_execute(statement, err);
}

int fold_row_set_state(struct db *db, int64_t id, enum fold_state state, struct error *err)
{
	return run_with(db, SQL_FOLD_SET_STATE, id, state, err);
}

int fold_row_set_used(struct db *db, int64_t id, int64_t now_ms, struct error *err)
{
	return run_with(db, SQL_FOLD_SET_USED, id, now_ms, err);
}

int fold_row_release_of_step(struct db *db, int64_t run, uint64_t step, struct error *err)
{
	if (run_with(db, SQL_FOLD_RELEASE_FROM, run, bound(step), err) != 0)
		return -1;
	return run_with(db, SQL_FOLD_RELEASE_TO, run, bound(step), err);
}

int fold_row_release_surplus(struct db *db, int64_t run, struct error *err)
{
	return run_with(db, SQL_FOLD_RELEASE_SURPLUS, run, FOLD_DIRECT_MAX, err);
}

int fold_row_has_room(struct db *db, int64_t run, int64_t now_ms, bool *out_has, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_FOLD_COUNT_HELD, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, run);
	db_bind_i64(statement, 2, now_ms - FOLD_HELD_MS);
	const int got = db_step(statement, err);
	*out_has = got == 1 && db_column_i64(statement, 0) < FOLD_DIRECT_MAX;
	db_reset(statement);
	return got < 0 ? -1 : 0;
}

int fold_row_remove(struct db *db, int64_t id, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_FOLD_REMOVE, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, id);
	return db_execute(statement, err);
}
