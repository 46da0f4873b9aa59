#include "storage/run_tables/pin_row.h"

enum { REMOVE_ROWS = 500 };

#define PIN_COLUMNS "name, step, expires_ms, created_ms"
#define PIN_LIVES   "(expires_ms IS NULL OR expires_ms > ?2)"

static const char SQL_PIN_FIND[] =
	"SELECT " PIN_COLUMNS " FROM pins WHERE run = ?1 AND " PIN_LIVES " AND name = ?3";
static const char SQL_PIN_PUT[] =
	"INSERT INTO pins (run, name, step, expires_ms, created_ms) VALUES (?1, ?2, ?3, ?4, ?5)"
	" ON CONFLICT (run, name) DO UPDATE SET step = ?3, expires_ms = ?4, created_ms = ?5";
static const char SQL_PIN_REMOVE[] = "DELETE FROM pins WHERE run = ?1 AND name = ?2";
static const char SQL_PIN_COUNT[] = "SELECT COUNT(*) FROM pins WHERE run = ?1 AND " PIN_LIVES;
static const char SQL_PIN_SCAN[] =
	"SELECT " PIN_COLUMNS " FROM pins WHERE run = ?1 AND " PIN_LIVES " ORDER BY name";
static const char SQL_PIN_OF_STEP[] =
	"SELECT " PIN_COLUMNS " FROM pins WHERE run = ?1 AND " PIN_LIVES
	" AND step = ?3 ORDER BY name LIMIT 1";
static const char SQL_PIN_EXPIRED[] =
	"SELECT 1 FROM pins WHERE expires_ms IS NOT NULL AND expires_ms <= ?1 LIMIT 1";
static const char SQL_PIN_SWEEP[] =
	"DELETE FROM pins WHERE (run, name) IN"
	" (SELECT run, name FROM pins WHERE expires_ms IS NOT NULL AND expires_ms <= ?1 ORDER BY expires_ms LIMIT ?2)";
static const char SQL_PIN_REMOVE_OF_RUN[] =
	"DELETE FROM pins WHERE run = ?1 AND name IN (SELECT name FROM pins WHERE run = ?1 ORDER BY name LIMIT ?2)";

static struct db_statement *prepare(
	struct db *db, const char *sql, int64_t run, int64_t now_ms, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, sql, err);
	if (statement == NULL)
		return NULL;
	db_bind_i64(statement, 1, run);
	db_bind_i64(statement, 2, now_ms);
	return statement;
}

void pin_row_read(struct db_statement *scan, struct pin_message *out)
{
	*out = (struct pin_message){
		.name = db_column_blob(scan, 0),
		.step = (uint64_t)db_column_i64(scan, 1),
		.expires_ms = db_column_i64(scan, 2), /* NULL reads as 0 */
		.created_ms = db_column_i64(scan, 3),
	};
}

int pin_row_find(struct db *db, int64_t run, struct span name, int64_t now_ms,
	struct pin_message *out, struct error *err)
{
	struct db_statement *const statement = prepare(db, SQL_PIN_FIND, run, now_ms, err);
	if (statement == NULL)
		return -1;
	db_bind_blob(statement, 3, name);
	const int got = db_step(statement, err);
	if (got == 1)
		pin_row_read(statement, out);
	db_reset(statement);
	out->name = name;
	return got;
}

int pin_row_put(struct db *db, int64_t run, const struct pin_message *pin, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_PIN_PUT, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, run);
	db_bind_blob(statement, 2, pin->name);
	db_bind_i64(statement, 3, (int64_t)pin->step);
	if (pin->expires_ms != 0)
		db_bind_i64(statement, 4, pin->expires_ms);
	db_bind_i64(statement, 5, pin->created_ms);
	return db_execute(statement, err);
}

int pin_row_remove(struct db *db, int64_t run, struct span name, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_PIN_REMOVE, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, run);
	db_bind_blob(statement, 2, name);
	return db_execute(statement, err);
}

int pin_row_count(struct db *db, int64_t run, int64_t now_ms, size_t *out_count, struct error *err)
{
	struct db_statement *const statement = prepare(db, SQL_PIN_COUNT, run, now_ms, err);
	if (statement == NULL)
		return -1;
	const int got = db_step(statement, err);
	if (got == 1)
		*out_count = (size_t)db_column_i64(statement, 0);
	db_reset(statement);
	return got < 0 ? -1 : 0;
}

struct db_statement *pin_row_scan(struct db *db, int64_t run, int64_t now_ms, struct error *err)
{
	return prepare(db, SQL_PIN_SCAN, run, now_ms, err);
}

int pin_row_find_step(struct db *db, int64_t run, uint64_t step, int64_t now_ms,
	struct arena *arena, struct span *out_name, struct error *err)
{
	struct db_statement *const statement = prepare(db, SQL_PIN_OF_STEP, run, now_ms, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 3, (int64_t)step);
	const int got = db_step(statement, err);
	if (got == 1)
		*out_name = arena_copy(arena, db_column_blob(statement, 0));
	db_reset(statement);
	return got;
}

static int remove_some(
	struct db *db, const char *sql, int64_t first, bool *out_more, struct error *err)
{
	struct db_statement *const statement = prepare(db, sql, first, REMOVE_ROWS, err);
	const int result = statement == NULL ? -1 : db_execute(statement, err);
	*out_more = result == 0 && db_changes(db) == REMOVE_ROWS;
	return result;
}

int pin_row_has_expired(struct db *db, int64_t now_ms, bool *out_has, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_PIN_EXPIRED, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, now_ms);
	const int got = db_step(statement, err);
	db_reset(statement);
	*out_has = got == 1;
	return got < 0 ? -1 : 0;
}

int pin_row_sweep(struct db *db, int64_t now_ms, bool *out_more, struct error *err)
{
	return remove_some(db, SQL_PIN_SWEEP, now_ms, out_more, err);
}

int pin_row_remove_of_run(struct db *db, int64_t run, bool *out_more, struct error *err)
{
	return remove_some(db, SQL_PIN_REMOVE_OF_RUN, run, out_more, err);
}
