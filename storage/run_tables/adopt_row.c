/* A row is noted when a trainer completes a publish, and settled when the step worker has made a
 * step of it or failed. The publishes of a run are taken in the order of their ids, one at a time,
 * because a delta needs the step before it. The numbers in the statements are those of enum
 * adoption_state. */
#include "storage/run_tables/adopt_row.h"

enum { REMOVE_ROWS = 500 };

#define COLUMNS "id, run, identity, convention, state, objects, base, step, error, created_ms"
static const char SQL_ADOPT_NOTE[] =
	"INSERT INTO adoptions (run, identity, convention, state, objects, base, created_ms) VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6)"
	" ON CONFLICT (run, identity) DO UPDATE SET state = 0, objects = excluded.objects, base = excluded.base, error = NULL,"
	" created_ms = excluded.created_ms"
	" WHERE adoptions.state = 2";
static const char SQL_ADOPT_FIND[] = "SELECT " COLUMNS " FROM adoptions WHERE id = ?1";
static const char SQL_ADOPT_IDENTITY[] =
	"SELECT " COLUMNS " FROM adoptions WHERE run = ?1 AND identity = ?2";
static const char SQL_ADOPT_STEP[] =
	"SELECT " COLUMNS " FROM adoptions WHERE run = ?1 AND step = ?2";
static const char SQL_ADOPT_NEWEST[] =
	"SELECT " COLUMNS " FROM adoptions WHERE run = ?1 AND state <> 2 ORDER BY id DESC LIMIT 1";
static const char SQL_ADOPT_LAST[] =
	"SELECT " COLUMNS " FROM adoptions WHERE run = ?1 ORDER BY id DESC LIMIT 1";
static const char SQL_ADOPT_FAILURE[] =
	"SELECT " COLUMNS
	" FROM adoptions WHERE run = ?1 AND state = 2 AND (created_ms, id) > (SELECT created_ms, id FROM ("
	"SELECT created_ms, id, step FROM adoptions WHERE run = ?1 AND step IS NOT NULL UNION ALL SELECT -1, -1, -1)"
	" ORDER BY step DESC LIMIT 1) ORDER BY error = ?2, created_ms DESC, id DESC LIMIT 1";
static const char SQL_ADOPT_WAITING[] =
	"SELECT MIN(id), run FROM adoptions WHERE state = 0 GROUP BY run HAVING MIN(id) > ?1 ORDER BY 1 LIMIT 1";
static const char SQL_ADOPT_PUBLISHED[] = "UPDATE adoptions SET state = 1, step = ?2 WHERE id = ?1";
static const char SQL_ADOPT_FAILED[] = "UPDATE adoptions SET state = 2, error = ?2 WHERE id = ?1";
static const char SQL_ADOPT_ORPHANS[] =
	"UPDATE adoptions SET state = 2, error = ?2 WHERE state = 0 AND id > ?1 AND base IS NOT NULL"
	" AND run = (SELECT run FROM adoptions WHERE id = ?1)";
static const char SQL_ADOPT_FORGET[] = "DELETE FROM adoptions WHERE run = ?1 AND step = ?2";
static const char SQL_ADOPT_PRUNE[] =
	"DELETE FROM adoptions WHERE id IN (SELECT id FROM adoptions WHERE run = (SELECT run FROM adoptions WHERE id = ?1) AND state = 2"
	" ORDER BY id DESC LIMIT 1000 OFFSET ?2)";
static const char SQL_ADOPT_COUNT_WAITING[] =
	"SELECT COUNT(*) FROM adoptions WHERE state = 0 AND run = ?1";
static const char SQL_ADOPT_REMOVE_OF_RUN[] =
	"DELETE FROM adoptions WHERE id IN (SELECT id FROM adoptions WHERE run = ?1 ORDER BY id LIMIT ?2)";
static const char SQL_ADOPT_REMOVE[] = "DELETE FROM adoptions WHERE id = ?1";
static const char SQL_ADOPT_BUCKET[] =
	"SELECT buckets.id, buckets.name FROM runs JOIN buckets ON buckets.id = runs.bucket WHERE runs.id = ?1 AND runs.name IS NOT NULL";
#undef COLUMNS
static const char ORPHANED[] = "The publish that it builds on could not become a step.";

static int first_row(struct db_statement *statement, struct arena *arena, struct adoption *out,
	struct error *err);

int adopt_row_note(
	struct db *db, const struct adoption *adoption, int64_t now_ms, struct error *err)
{
	ASSERT(adoption->convention != ADOPT_NONE);
	ASSERT(adoption->identity.len > 0 && adoption->objects.len > 0);
	return db_run(db, SQL_ADOPT_NOTE, err, db_i64(adoption->run), db_blob(adoption->identity),
		db_i64(adoption->convention), db_blob(adoption->objects),
		db_blob_or_null(adoption->has_base, adoption->base), db_i64(now_ms));
}

int adopt_row_find_identity(struct db *db, int64_t run, struct span identity, struct arena *arena,
	struct adoption *out, struct error *err)
{
	return first_row(db_query(db, SQL_ADOPT_IDENTITY, err, db_i64(run), db_blob(identity)),
		arena, out, err);
}

int adopt_row_find_step(struct db *db, int64_t run, uint64_t step, struct arena *arena,
	struct adoption *out, struct error *err)
{
	return first_row(db_query(db, SQL_ADOPT_STEP, err, db_i64(run), db_i64((int64_t)step)),
		arena, out, err);
}

int adopt_row_find(
	struct db *db, int64_t id, struct arena *arena, struct adoption *out, struct error *err)
{
	return first_row(db_query(db, SQL_ADOPT_FIND, err, db_i64(id)), arena, out, err);
}

int adopt_row_find_newest(
	struct db *db, int64_t run, struct arena *arena, struct adoption *out, struct error *err)
{
	return first_row(db_query(db, SQL_ADOPT_NEWEST, err, db_i64(run)), arena, out, err);
}

int adopt_row_find_last(
	struct db *db, int64_t run, struct arena *arena, struct adoption *out, struct error *err)
{
	return first_row(db_query(db, SQL_ADOPT_LAST, err, db_i64(run)), arena, out, err);
}

int adopt_row_find_failure(
	struct db *db, int64_t run, struct arena *arena, struct adoption *out, struct error *err)
{
	return first_row(
		db_query(db, SQL_ADOPT_FAILURE, err, db_i64(run), db_blob(span_text(ORPHANED))),
		arena, out, err);
}

int adopt_row_find_waiting(
	struct db *db, int64_t after, int64_t *out_id, int64_t *out_run, struct error *err)
{
	struct db_statement *const row = db_query(db, SQL_ADOPT_WAITING, err, db_i64(after));
	const int got = db_step(row, err);
	if (got == 1) {
		*out_id = db_column_i64(row, 0);
		*out_run = db_column_i64(row, 1);
	}
	db_reset(row);
	return got;
}

int adopt_row_set_published(struct db *db, int64_t id, uint64_t step, struct error *err)
{
	ASSERT(step <= INT64_MAX);
	return db_run(db, SQL_ADOPT_PUBLISHED, err, db_i64(id), db_i64((int64_t)step));
}

int adopt_row_set_failed(struct db *db, int64_t id, struct span error, struct error *err)
{
	ASSERT(error.len > 0);
	if (db_run(db, SQL_ADOPT_FAILED, err, db_i64(id), db_blob(error)) != 0 ||
		db_run(db, SQL_ADOPT_ORPHANS, err, db_i64(id), db_blob(span_text(ORPHANED))) != 0)
		return -1;
	return db_run(db, SQL_ADOPT_PRUNE, err, db_i64(id), db_i64(ADOPT_FAILED_KEPT));
}

int adopt_row_count_waiting(struct db *db, int64_t run, int64_t *out, struct error *err)
{
	*out = 0;
	return db_find_i64(db, SQL_ADOPT_COUNT_WAITING, out, err, db_i64(run)) < 0 ? -1 : 0;
}

int adopt_row_forget_step(struct db *db, int64_t run, uint64_t step, struct error *err)
{
	return db_run(db, SQL_ADOPT_FORGET, err, db_i64(run), db_i64((int64_t)step));
}

int adopt_row_remove(struct db *db, int64_t id, struct error *err)
{
	return db_run(db, SQL_ADOPT_REMOVE, err, db_i64(id));
}

int adopt_row_remove_of_run(struct db *db, int64_t run, bool *out_more, struct error *err)
{
	const int result =
		db_run(db, SQL_ADOPT_REMOVE_OF_RUN, err, db_i64(run), db_i64(REMOVE_ROWS));
	*out_more = result == 0 && db_changes(db) == REMOVE_ROWS;
	return result;
}

int adopt_row_find_bucket(
	struct db *db, int64_t run, struct arena *arena, struct bucket_ref *out, struct error *err)
{
	struct db_statement *const row = db_query(db, SQL_ADOPT_BUCKET, err, db_i64(run));
	const int got = db_step(row, err);
	if (got == 1)
		*out = (struct bucket_ref){.id = db_column_i64(row, 0),
			.name = arena_copy(arena, db_column_blob(row, 1))};
	db_reset(row);
	return got == 0 ? error_set(err, ERROR_NO_RUN, "The run has ended.") : got == 1 ? 0 : -1;
}

/* Reads the first row of the statement, if any, and ends the statement. */
static int first_row(struct db_statement *statement, struct arena *arena, struct adoption *out,
	struct error *err)
{
	const int got = db_step(statement, err);
	if (got == 1) {
		*out = (struct adoption){
			.id = db_column_i64(statement, 0),
			.run = db_column_i64(statement, 1),
			.identity = arena_copy(arena, db_column_blob(statement, 2)),
			.convention = (enum adopt_convention)db_column_i64(statement, 3),
			.state = (enum adoption_state)db_column_i64(statement, 4),
			.objects = arena_copy(arena, db_column_blob(statement, 5)),
			.has_base = !db_column_is_null(statement, 6),
			.base = arena_copy(arena, db_column_blob(statement, 6)),
			.step = (uint64_t)db_column_i64(statement, 7),
			.error = arena_copy(arena, db_column_blob(statement, 8)),
			.created_ms = db_column_i64(statement, 9),
		};
	}
	db_reset(statement);
	if (got == 1 && arena_overflowed(arena))
		return error_set(err, ERROR_NO_MEMORY,
			"The request's memory ran out while reading a foreign publish.");
	return got;
}
