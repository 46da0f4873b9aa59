#include "storage/runs/step_part_row.h"

#include <string.h>

#include "storage/runs/step_pin.h"

#define PART_COLUMNS "id, run, step, part, parts, epoch, state, content, created_ms"

static const char SQL_PART_FIND[] =
	"SELECT " PART_COLUMNS
	" FROM step_parts WHERE run = ?1 AND step = ?2 AND part = ?3 AND epoch = ?4 AND state <> 2 LIMIT 1";
static const char SQL_PART_COUNT[] =
	"SELECT COUNT(*), MAX(parts), MAX(id) FROM step_parts WHERE run = ?1 AND step = ?2 AND state = 0";
static const char SQL_PART_ADD[] =
	"INSERT INTO step_parts (run, step, part, parts, epoch, state, content, document, created_ms)"
	" VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?7, ?8)";
static const char SQL_PART_SCAN[] =
	"SELECT " PART_COLUMNS
	", document FROM step_parts WHERE run = ?1 AND step = ?2 AND state = 0 ORDER BY part";
static const char SQL_PART_SETTLE[] =
	"UPDATE step_parts SET state = ?3, document = NULL WHERE run = ?1 AND id <= ?2 AND state = 0";
static const char SQL_PART_RELEASING[] =
	"SELECT id, state FROM step_parts WHERE state = 1 OR state = 2 LIMIT 1";
static const char SQL_PART_RELEASED[] = "UPDATE step_parts SET state = 3 WHERE id = ?1";
static const char SQL_PART_REMOVE[] = "DELETE FROM step_parts WHERE id = ?1";
static const char SQL_PART_OVERDUE[] =
	"SELECT id, state FROM step_parts WHERE (state = 0 OR state = 3) AND created_ms <= ?1 LIMIT 1";
static const char SQL_PART_DIE[] = "UPDATE step_parts SET state = 2, document = NULL WHERE id = ?1";
static const char SQL_PART_OF_RUN[] = "SELECT 1 FROM step_parts WHERE run = ?1 LIMIT 1";
static const char SQL_PART_END_RUN[] =
	"UPDATE step_parts SET state = 2, document = NULL WHERE run = ?1 AND state <> 2";

static void read_row(struct db_statement *scan, struct step_part_row *out)
{
	*out = (struct step_part_row){
		.id = db_column_i64(scan, 0),
		.run = db_column_i64(scan, 1),
		.step = (uint64_t)db_column_i64(scan, 2),
		.part = (uint64_t)db_column_i64(scan, 3),
		.parts = (uint64_t)db_column_i64(scan, 4),
		.epoch = (uint64_t)db_column_i64(scan, 5),
		.state = (enum step_part_state)db_column_i64(scan, 6),
		.created_ms = db_column_i64(scan, 8),
	};
	const struct span content = db_column_blob(scan, 7);
	if (content.len == sizeof(out->content.bytes))
		memcpy(out->content.bytes, content.data, content.len);
}

void step_part_row_read(struct db_statement *scan, struct step_part_row *out)
{
	read_row(scan, out);
	out->document = db_column_blob(scan, 9);
}

static struct db_statement *prepare_of_step(
	struct db *db, const char *sql, int64_t run, uint64_t step, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, sql, err);
	if (statement == NULL)
		return NULL;
	db_bind_i64(statement, 1, run);
	db_bind_i64(statement, 2, (int64_t)step);
	return statement;
}

int step_part_row_find(struct db *db, int64_t run, uint64_t step, uint64_t part, uint64_t epoch,
	struct step_part_row *out, struct error *err)
{
	struct db_statement *const statement = prepare_of_step(db, SQL_PART_FIND, run, step, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 3, (int64_t)part);
	db_bind_i64(statement, 4, (int64_t)epoch);
	const int got = db_step(statement, err);
	if (got == 1)
		read_row(statement, out);
	db_reset(statement);
	return got;
}

int step_part_row_count(
	struct db *db, int64_t run, uint64_t step, struct step_part_count *out, struct error *err)
{
	struct db_statement *const statement = prepare_of_step(db, SQL_PART_COUNT, run, step, err);
	if (statement == NULL)
		return -1;
	const int got = db_step(statement, err);
	if (got == 1) /* NULL reads as 0 */
		*out = (struct step_part_count){(uint64_t)db_column_i64(statement, 0),
			(uint64_t)db_column_i64(statement, 1), db_column_i64(statement, 2)};
	db_reset(statement);
	return got < 0 ? -1 : 0;
}

int step_part_row_add(struct db *db, struct step_part_row *row, struct error *err)
{
	struct db_statement *const statement =
		prepare_of_step(db, SQL_PART_ADD, row->run, row->step, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 3, (int64_t)row->part);
	db_bind_i64(statement, 4, (int64_t)row->parts);
	db_bind_i64(statement, 5, (int64_t)row->epoch);
	db_bind_blob(statement, 6, span_of(row->content.bytes, sizeof(row->content.bytes)));
	db_bind_blob(statement, 7, row->document);
	db_bind_i64(statement, 8, row->created_ms);
	if (db_execute(statement, err) != 0)
		return -1;
	row->id = db_last_id(db);
	return 0;
}

struct db_statement *step_part_row_scan(
	struct db *db, int64_t run, uint64_t step, struct error *err)
{
	return prepare_of_step(db, SQL_PART_SCAN, run, step, err);
}

int step_part_row_settle(
	struct db *db, int64_t run, int64_t last, enum step_part_state state, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_PART_SETTLE, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, run);
	db_bind_i64(statement, 2, last);
	db_bind_i64(statement, 3, state);
	return db_execute(statement, err);
}

static int on_number(struct db *db, const char *sql, int64_t number, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, sql, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, number);
	return db_execute(statement, err);
}

static int first(struct db *db, const char *sql, const int64_t *bound, int64_t *out_id,
	int64_t *out_state, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, sql, err);
	if (statement == NULL)
		return -1;
	if (bound != NULL)
		db_bind_i64(statement, 1, *bound);
	const int got = db_step(statement, err);
	if (got == 1) {
		*out_id = db_column_i64(statement, 0);
		*out_state = db_column_i64(statement, 1);
	}
	db_reset(statement);
	return got;
}

static int release(struct db *db, int64_t id, int64_t state, struct error *err)
{
	bool more = false;
	if (step_pin_release(db, -id, &more, err) != 0)
		return -1;
	if (more)
		return 0;
	return on_number(
		db, state == STEP_PART_PUBLISHED ? SQL_PART_RELEASED : SQL_PART_REMOVE, id, err);
}

static int find_over(
	struct db *db, int64_t now_ms, int64_t *out_id, int64_t *out_state, struct error *err)
{
	const int64_t before = now_ms - STEP_PART_LIFE_MS;
	const int found = first(db, SQL_PART_RELEASING, NULL, out_id, out_state, err);
	return found != 0 ? found : first(db, SQL_PART_OVERDUE, &before, out_id, out_state, err);
}

int step_part_row_sweep(struct db *db, int64_t now_ms, bool *out_more, struct error *err)
{
	int64_t id = 0;
	int64_t state = 0;
	const int found = find_over(db, now_ms, &id, &state, err);
	*out_more = found == 1;
	if (found != 1)
		return found;
	if (state == STEP_PART_WAITING)
		return on_number(db, SQL_PART_DIE, id, err);
	return state == STEP_PART_DONE ? on_number(db, SQL_PART_REMOVE, id, err)
				       : release(db, id, state, err);
}

int step_part_row_has_work(struct db *db, int64_t now_ms, bool *out_has, struct error *err)
{
	int64_t id;
	int64_t state;
	const int found = find_over(db, now_ms, &id, &state, err);
	*out_has = found == 1;
	return found < 0 ? -1 : 0;
}

int step_part_row_end_run(struct db *db, int64_t run, bool *out_any, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_PART_OF_RUN, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, run);
	const int got = db_step(statement, err);
	db_reset(statement);
	*out_any = got == 1;
	return got == 1 ? on_number(db, SQL_PART_END_RUN, run, err) : got;
}
