/* A view has a row as soon as it is wanted, so that a worker that starts anew finds what is to be
 * made. The newest steps come first where readers ask, the oldest first where views are made. */
#include "storage/run_tables/view_row.h"

static const char SQL_VIEW_WANT[] =
	"INSERT INTO step_views (step, kind, state) VALUES (?1, ?2, 0) ON CONFLICT (step, kind) DO NOTHING";
static const char SQL_VIEW_WANT_ALL[] =
	"INSERT INTO step_views (step, kind, state) SELECT id, ?2, 0 FROM"
	" (SELECT id FROM steps WHERE run = ?1 AND state = 0 ORDER BY step DESC LIMIT 1000) AS newest WHERE true"
	" ON CONFLICT (step, kind) DO UPDATE SET state = 0, error = NULL WHERE step_views.state = 2";
static const char SQL_VIEW_FIND[] = "SELECT state FROM step_views WHERE step = ?1 AND kind = ?2";
static const char SQL_VIEW_WANTED[] =
	"SELECT step_views.step, step_views.kind, steps.run, steps.step FROM step_views JOIN steps ON steps.id = step_views.step"
	" WHERE step_views.state = 0 AND (step_views.step > ?1 OR (step_views.step = ?1 AND step_views.kind > ?2))"
	" AND steps.state = 0 AND steps.verified <> 2 ORDER BY step_views.step, step_views.kind LIMIT 1";
static const char SQL_VIEW_PENDING[] =
	"SELECT wanted.kind, steps.step, runs.name, steps.anchor_bytes IS NOT NULL,"
	" EXISTS (SELECT 1 FROM steps AS base WHERE base.run = steps.run AND base.step = steps.step - 1 AND base.state = 0)"
	" FROM (SELECT step, kind FROM step_views WHERE state = 0 ORDER BY step DESC, kind DESC LIMIT ?2) AS wanted"
	" CROSS JOIN steps ON steps.id = wanted.step CROSS JOIN runs ON runs.id = steps.run"
	" WHERE runs.bucket = ?1 AND runs.name IS NOT NULL AND steps.state = 0 AND steps.verified <> 2";
static const char SQL_VIEW_SETTLE[] =
	"UPDATE step_views SET state = ?3, error = ?4 WHERE step = ?1 AND kind = ?2";
static const char SQL_VIEW_FORGET[] =
	"DELETE FROM step_views WHERE state = 0 AND kind = ?2 AND step IN (SELECT id FROM steps WHERE run = ?1)";
static const char SQL_VIEW_REMOVE[] = "DELETE FROM step_views WHERE step = ?1";

int view_row_want(struct db *db, int64_t step, enum view_kind kind, struct error *err)
{
	return db_run(db, SQL_VIEW_WANT, err, db_i64(step), db_i64(kind));
}

int view_row_want_all(struct db *db, int64_t run, enum view_kind kind, struct error *err)
{
	return db_run(db, SQL_VIEW_WANT_ALL, err, db_i64(run), db_i64(kind));
}

int view_row_forget_wanted(struct db *db, int64_t run, enum view_kind kind, struct error *err)
{
	return db_run(db, SQL_VIEW_FORGET, err, db_i64(run), db_i64(kind));
}

int view_row_find(struct db *db, int64_t step, enum view_kind kind, enum view_state *out_state,
	struct error *err)
{
	int64_t state;
	const int got = db_find_i64(db, SQL_VIEW_FIND, &state, err, db_i64(step), db_i64(kind));
	if (got == 1)
		*out_state = (enum view_state)state;
	return got;
}

int view_row_find_wanted(struct db *db, int64_t after_step, int after_kind, struct view_wanted *out,
	struct error *err)
{
	struct db_statement *const row =
		db_query(db, SQL_VIEW_WANTED, err, db_i64(after_step), db_i64(after_kind));
	const int got = db_step(row, err);
	if (got == 1) {
		*out = (struct view_wanted){
			.step = db_column_i64(row, 0),
			.kind = (enum view_kind)db_column_i64(row, 1),
			.run = db_column_i64(row, 2),
			.number = (uint64_t)db_column_i64(row, 3),
		};
	}
	db_reset(row);
	return got;
}

int view_row_list_pending(struct db *db, int64_t bucket, struct arena *arena,
	struct view_pending out[VIEW_PENDING_MAX], size_t *out_count, struct error *err)
{
	struct db_statement *const scan =
		db_query(db, SQL_VIEW_PENDING, err, db_i64(bucket), db_i64(VIEW_PENDING_MAX));
	int got;
	*out_count = 0;
	while ((got = db_step(scan, err)) == 1) {
		ASSERT(*out_count < VIEW_PENDING_MAX); /* the statement's limit */
		out[(*out_count)++] = (struct view_pending){
			.kind = (enum view_kind)db_column_i64(scan, 0),
			.number = (uint64_t)db_column_i64(scan, 1),
			.run = arena_copy(arena, db_column_blob(scan, 2)),
			.has_anchor = db_column_i64(scan, 3) != 0,
			.has_base = db_column_i64(scan, 4) != 0,
		};
	}
	db_reset(scan);
	return got;
}

int view_row_settle(struct db *db, int64_t step, enum view_kind kind, enum view_state state,
	struct span error, struct error *err)
{
	ASSERT(state != VIEW_WANTED);
	return db_run(db, SQL_VIEW_SETTLE, err, db_i64(step), db_i64(kind), db_i64(state),
		db_blob_or_null(error.len > 0, error));
}

int view_row_remove(struct db *db, int64_t step, struct error *err)
{
	return db_run(db, SQL_VIEW_REMOVE, err, db_i64(step));
}
