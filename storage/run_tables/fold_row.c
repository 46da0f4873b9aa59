/* A fold is known by the steps that it connects. A removed step, or too many direct folds in a run,
 * mark it as releasing. The sweeper then releases its objects in slices and removes the row with
 * the last of them, and does the same with direct folds that are unused
 * (storage/step_jobs/fold_sweep.h). The numbers in the statements are those of enum fold_kind and
 * enum fold_state. */
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

static int first_row(struct db_statement *statement, struct fold_row *out, struct error *err);
static int64_t bound(uint64_t step);

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

int fold_row_find(struct db *db, int64_t run, uint64_t from, uint64_t to, struct fold_row *out,
	struct error *err)
{
	return first_row(db_query(db, SQL_FOLD_FIND, err, db_i64(run), db_i64(bound(to)),
				 db_i64(bound(from))),
		out, err);
}

int fold_row_find_id(struct db *db, int64_t id, struct fold_row *out, struct error *err)
{
	return first_row(db_query(db, SQL_FOLD_FIND_ID, err, db_i64(id)), out, err);
}

int fold_row_find_wanted(
	struct db *db, enum fold_kind kind, int64_t limit, struct fold_row *out, struct error *err)
{
	ASSERT(kind == FOLD_DIRECT || kind == FOLD_SKIP);
	const char *const sql = kind == FOLD_DIRECT ? SQL_FOLD_WANTED_DIRECT : SQL_FOLD_WANTED_SKIP;
	return first_row(db_query(db, sql, err, db_i64(limit)), out, err);
}

int fold_row_find_releasing(struct db *db, int64_t *out_id, struct error *err)
{
	return db_find_i64(db, SQL_FOLD_RELEASING, out_id, err);
}

int fold_row_find_unused(struct db *db, int64_t before_ms, int64_t *out_id, struct error *err)
{
	return db_find_i64(db, SQL_FOLD_UNUSED, out_id, err, db_i64(before_ms));
}

int fold_row_find_of_run(struct db *db, int64_t run, int64_t *out_id, struct error *err)
{
	return db_find_i64(db, SQL_FOLD_OF_RUN, out_id, err, db_i64(run));
}

struct db_statement *fold_row_scan(struct db *db, int64_t run, uint64_t to, struct error *err)
{
	return db_query(db, SQL_FOLD_SCAN, err, db_i64(run), db_i64(bound(to)));
}

int fold_row_want(struct db *db, const struct fold_row *row, struct error *err)
{
	ASSERT(row->from < row->to);
	return db_run(db, SQL_FOLD_WANT, err, db_i64(row->run), db_i64(bound(row->from)),
		db_i64(bound(row->to)), db_i64(row->kind), db_blob(span_text("")),
		db_i64(row->used_ms));
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
	ASSERT(format.len > 0 && format.len <= STEP_FORMAT_MAX_BYTES);
	return db_run(db, SQL_FOLD_MADE, err, db_i64(id), db_blob(format), db_i64(bound(bytes)));
}

int fold_row_set_state(struct db *db, int64_t id, enum fold_state state, struct error *err)
{
	ASSERT(state == FOLD_REFUSED || state == FOLD_RELEASING);
	return db_run(db, SQL_FOLD_SET_STATE, err, db_i64(id), db_i64(state));
}

int fold_row_set_used(struct db *db, int64_t id, int64_t now_ms, struct error *err)
{
	return db_run(db, SQL_FOLD_SET_USED, err, db_i64(id), db_i64(now_ms));
}

int fold_row_release_of_step(struct db *db, int64_t run, uint64_t step, struct error *err)
{
	if (db_run(db, SQL_FOLD_RELEASE_FROM, err, db_i64(run), db_i64(bound(step))) != 0)
		return -1;
	return db_run(db, SQL_FOLD_RELEASE_TO, err, db_i64(run), db_i64(bound(step)));
}

int fold_row_release_surplus(struct db *db, int64_t run, struct error *err)
{
	return db_run(db, SQL_FOLD_RELEASE_SURPLUS, err, db_i64(run), db_i64(FOLD_DIRECT_MAX));
}

int fold_row_has_room(struct db *db, int64_t run, int64_t now_ms, bool *out_has, struct error *err)
{
	int64_t held = 0;
	const int got = db_find_i64(
		db, SQL_FOLD_COUNT_HELD, &held, err, db_i64(run), db_i64(now_ms - FOLD_HELD_MS));
	*out_has = got == 1 && held < FOLD_DIRECT_MAX;
	return got < 0 ? -1 : 0;
}

int fold_row_remove(struct db *db, int64_t id, struct error *err)
{
	return db_run(db, SQL_FOLD_REMOVE, err, db_i64(id));
}

static int first_row(struct db_statement *statement, struct fold_row *out, struct error *err)
{
	const int got = db_step(statement, err);
	if (got == 1)
		fold_row_read(statement, out);
	db_reset(statement);
	return got;
}

/* No row has a step above INT64_MAX, so a higher number may be cut. */
static int64_t bound(uint64_t step)
{
	return step > INT64_MAX ? INT64_MAX : (int64_t)step;
}
