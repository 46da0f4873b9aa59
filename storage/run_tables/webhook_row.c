#include "storage/run_tables/webhook_row.h"

static const char SQL_WEBHOOK_ADD[] =
	"INSERT INTO webhook_events (run, body, attempts, due_ms) VALUES (?1, ?2, 0, ?3)";
static const char SQL_WEBHOOK_COUNT[] =
	"SELECT count(*), min(id) FROM webhook_events WHERE run = ?1";
/* With the account that owns the run, or NULL when the run does not exist any more. */
static const char SQL_WEBHOOK_NEXT_RUN[] =
	"SELECT e.run, b.account FROM (SELECT min(run) AS run FROM webhook_events WHERE run > ?1) e "
	"LEFT JOIN runs r ON r.id = e.run LEFT JOIN buckets b ON b.id = r.bucket WHERE e.run IS NOT NULL";
/* The unary pluses make the engine use the index over runs. The index over due_ms would lead it
 * through the events of all runs. */
static const char SQL_WEBHOOK_DUE[] =
	"SELECT id, run, body, attempts, due_ms FROM webhook_events "
	"WHERE run = ?1 AND +due_ms <= ?2 ORDER BY +due_ms, id LIMIT 1";
static const char SQL_WEBHOOK_COUNT_ALL[] = "SELECT count(*) FROM webhook_events";
static const char SQL_WEBHOOK_POSTPONE[] =
	"UPDATE webhook_events SET attempts = attempts + 1, due_ms = ?2 WHERE id = ?1";
static const char SQL_WEBHOOK_REMOVE[] = "DELETE FROM webhook_events WHERE id = ?1";
static const char SQL_WEBHOOK_FORGET[] = "DELETE FROM webhook_events WHERE run = ?1";

int webhook_row_add(struct db *db, int64_t run, struct span body, int64_t due_ms,
	uint64_t *out_dropped, struct error *err)
{
	ASSERT(body.len > 0);
	struct db_statement *const count = db_query(db, SQL_WEBHOOK_COUNT, err, db_i64(run));
	const int got = db_step(count, err);
	const bool is_full = got == 1 && db_column_i64(count, 0) >= WEBHOOK_EVENTS_MAX;
	const int64_t oldest = got == 1 ? db_column_i64(count, 1) : 0;
	db_reset(count);
	*out_dropped = is_full;
	if (got < 0 || (is_full && webhook_row_remove(db, oldest, err) != 0))
		return -1;
	return db_run(db, SQL_WEBHOOK_ADD, err, db_i64(run), db_blob(body), db_i64(due_ms));
}

int webhook_row_next_run(struct db *db, int64_t after, struct webhook_run *out, struct error *err)
{
	struct db_statement *const row = db_query(db, SQL_WEBHOOK_NEXT_RUN, err, db_i64(after));
	const int got = db_step(row, err);
	if (got == 1)
		*out = (struct webhook_run){
			.run = db_column_i64(row, 0), .account = db_column_i64(row, 1)};
	db_reset(row);
	return got;
}

int webhook_row_find_due(struct db *db, int64_t run, int64_t now_ms, struct arena *arena,
	struct webhook_event *out, struct error *err)
{
	struct db_statement *const row =
		db_query(db, SQL_WEBHOOK_DUE, err, db_i64(run), db_i64(now_ms));
	const int got = db_step(row, err);
	if (got == 1) {
		*out = (struct webhook_event){
			.id = db_column_i64(row, 0),
			.run = db_column_i64(row, 1),
			.body = arena_copy(arena, db_column_blob(row, 2)),
			.attempts = (uint64_t)db_column_i64(row, 3),
			.due_ms = db_column_i64(row, 4),
		};
	}
	db_reset(row);
	return got;
}

int webhook_row_count(struct db *db, uint64_t *out, struct error *err)
{
	int64_t count = 0;
	const int found = db_find_i64(db, SQL_WEBHOOK_COUNT_ALL, &count, err);
	*out = (uint64_t)count;
	return found < 0 ? -1 : 0;
}

int webhook_row_postpone(struct db *db, int64_t id, int64_t due_ms, struct error *err)
{
	return db_run(db, SQL_WEBHOOK_POSTPONE, err, db_i64(id), db_i64(due_ms));
}

int webhook_row_remove(struct db *db, int64_t id, struct error *err)
{
	return db_run(db, SQL_WEBHOOK_REMOVE, err, db_i64(id));
}

int webhook_row_remove_of_run(struct db *db, int64_t run, struct error *err)
{
	return db_run(db, SQL_WEBHOOK_FORGET, err, db_i64(run));
}
