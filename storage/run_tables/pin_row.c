/* Expired pins do not count, so each statement that looks for pins has the condition PIN_LIVES.
 * Sweeping only frees their space. */
#include "storage/run_tables/pin_row.h"

#include <string.h>

enum { REMOVE_ROWS = 500 };

#define PIN_COLUMNS "name, step, expires_ms, created_ms"
#define PIN_LIVES   "(expires_ms IS NULL OR expires_ms > ?2)"

static const char SQL_PIN_FIND[] =
	"SELECT " PIN_COLUMNS " FROM pins WHERE run = ?1 AND " PIN_LIVES " AND name = ?3";
static const char SQL_PIN_PUT[] =
	"INSERT INTO pins (run, name, step, expires_ms, created_ms) VALUES (?1, ?2, ?3, ?4, ?5)"
	" ON CONFLICT (run, name) DO UPDATE SET step = ?3, expires_ms = ?4, created_ms = ?5";
static const char SQL_PIN_REMOVE[] = "DELETE FROM pins WHERE run = ?1 AND name = ?2";
static const char SQL_PIN_COUNT[] = "SELECT COUNT(*) FROM pins WHERE run = ?1 AND " PIN_LIVES
				    " AND name <> CAST('" PIN_ROLLBACK "' AS BLOB)";
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

static int remove_some(
	struct db *db, const char *sql, int64_t first, bool *out_more, struct error *err);

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
	struct db_statement *const row =
		db_query(db, SQL_PIN_FIND, err, db_i64(run), db_i64(now_ms), db_blob(name));
	const int got = db_step(row, err);
	if (got == 1)
		pin_row_read(row, out);
	db_reset(row);
	out->name = name;
	return got;
}

int pin_row_put(struct db *db, int64_t run, const struct pin_message *pin, struct error *err)
{
	ASSERT(pin->name.len > 0 && pin->name.len < PIN_NAME_BYTES);
	return db_run(db, SQL_PIN_PUT, err, db_i64(run), db_blob(pin->name),
		db_i64((int64_t)pin->step), db_i64_or_null(pin->expires_ms != 0, pin->expires_ms),
		db_i64(pin->created_ms));
}

int pin_row_remove(struct db *db, int64_t run, struct span name, struct error *err)
{
	return db_run(db, SQL_PIN_REMOVE, err, db_i64(run), db_blob(name));
}

int pin_row_count(struct db *db, int64_t run, int64_t now_ms, size_t *out_count, struct error *err)
{
	int64_t count;
	const int got = db_find_i64(db, SQL_PIN_COUNT, &count, err, db_i64(run), db_i64(now_ms));
	if (got == 1)
		*out_count = (size_t)count;
	return got < 0 ? -1 : 0;
}

struct db_statement *pin_row_scan(struct db *db, int64_t run, int64_t now_ms, struct error *err)
{
	return db_query(db, SQL_PIN_SCAN, err, db_i64(run), db_i64(now_ms));
}

int pin_row_find_step(struct db *db, int64_t run, uint64_t step, int64_t now_ms,
	char out_name[PIN_NAME_BYTES], struct error *err)
{
	struct db_statement *const row = db_query(
		db, SQL_PIN_OF_STEP, err, db_i64(run), db_i64(now_ms), db_i64((int64_t)step));
	const int got = db_step(row, err);
	if (got == 1) {
		const struct span name =
			span_slice(db_column_blob(row, 0), 0, REPLICA_ID_MAX_BYTES);
		memcpy(out_name, name.data, name.len);
		out_name[name.len] = '\0';
	}
	db_reset(row);
	return got;
}

int pin_row_has_expired(struct db *db, int64_t now_ms, bool *out_has, struct error *err)
{
	const int got = db_exists(db, SQL_PIN_EXPIRED, err, db_i64(now_ms));
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

static int remove_some(
	struct db *db, const char *sql, int64_t first, bool *out_more, struct error *err)
{
	const int result = db_run(db, sql, err, db_i64(first), db_i64(REMOVE_ROWS));
	*out_more = result == 0 && db_changes(db) == REMOVE_ROWS;
	return result;
}
