/* A part waits until its step is published or the part dies. Either way its objects are released in
 * slices. Then the row of a dead part is removed; that of a published one stays until an hour after
 * the part was put. The numbers in the statements are those of enum step_part_state. */
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

static void read_row(struct db_statement *scan, struct step_part_row *out);
static int find_due(
	struct db *db, int64_t now_ms, int64_t *out_id, int64_t *out_state, struct error *err);
static int take_first(
	struct db_statement *rows, int64_t *out_id, int64_t *out_state, struct error *err);
static int release(struct db *db, int64_t id, int64_t state, struct error *err);

void step_part_row_read(struct db_statement *scan, struct step_part_row *out)
{
	read_row(scan, out);
	out->document = db_column_blob(scan, 9);
}

int step_part_row_find(struct db *db, const struct step_part_key *key, struct step_part_row *out,
	struct error *err)
{
	struct db_statement *const statement =
		db_query(db, SQL_PART_FIND, err, db_i64(key->run), db_i64((int64_t)key->step),
			db_i64((int64_t)key->part), db_i64((int64_t)key->epoch));
	const int got = db_step(statement, err);
	if (got == 1)
		read_row(statement, out);
	db_reset(statement);
	return got;
}

int step_part_row_count(
	struct db *db, int64_t run, uint64_t step, struct step_part_count *out, struct error *err)
{
	struct db_statement *const statement =
		db_query(db, SQL_PART_COUNT, err, db_i64(run), db_i64((int64_t)step));
	const int got = db_step(statement, err);
	if (got == 1) /* NULL reads as 0 */
		*out = (struct step_part_count){(uint64_t)db_column_i64(statement, 0),
			(uint64_t)db_column_i64(statement, 1), db_column_i64(statement, 2)};
	db_reset(statement);
	return got < 0 ? -1 : 0;
}

int step_part_row_add(struct db *db, struct step_part_row *row, struct error *err)
{
	ASSERT(row->part < row->parts && row->state == STEP_PART_WAITING);
	return db_insert(db, SQL_PART_ADD, &row->id, err, db_i64(row->run),
		db_i64((int64_t)row->step), db_i64((int64_t)row->part), db_i64((int64_t)row->parts),
		db_i64((int64_t)row->epoch),
		db_blob(span_of(row->content.bytes, sizeof(row->content.bytes))),
		db_blob(row->document), db_i64(row->created_ms));
}

struct db_statement *step_part_row_scan(
	struct db *db, int64_t run, uint64_t step, struct error *err)
{
	return db_query(db, SQL_PART_SCAN, err, db_i64(run), db_i64((int64_t)step));
}

int step_part_row_settle(
	struct db *db, int64_t run, int64_t last, enum step_part_state state, struct error *err)
{
	ASSERT(state == STEP_PART_PUBLISHED || state == STEP_PART_DEAD);
	return db_run(db, SQL_PART_SETTLE, err, db_i64(run), db_i64(last), db_i64(state));
}

int step_part_row_sweep(struct db *db, int64_t now_ms, bool *out_more, struct error *err)
{
	int64_t id = 0;
	int64_t state = 0;
	const int found = find_due(db, now_ms, &id, &state, err);
	*out_more = found == 1;
	if (found != 1)
		return found;
	if (state == STEP_PART_WAITING)
		return db_run(db, SQL_PART_DIE, err, db_i64(id));
	return state == STEP_PART_DONE ? db_run(db, SQL_PART_REMOVE, err, db_i64(id))
				       : release(db, id, state, err);
}

int step_part_row_has_work(struct db *db, int64_t now_ms, bool *out_has, struct error *err)
{
	int64_t id;
	int64_t state;
	const int found = find_due(db, now_ms, &id, &state, err);
	*out_has = found == 1;
	return found < 0 ? -1 : 0;
}

int step_part_row_end_run(struct db *db, int64_t run, bool *out_any, struct error *err)
{
	const int got = db_exists(db, SQL_PART_OF_RUN, err, db_i64(run));
	*out_any = got == 1;
	return got == 1 ? db_run(db, SQL_PART_END_RUN, err, db_i64(run)) : got;
}

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

/* A part with objects to release, or one whose time is over. */
static int find_due(
	struct db *db, int64_t now_ms, int64_t *out_id, int64_t *out_state, struct error *err)
{
	const int found = take_first(db_query(db, SQL_PART_RELEASING, err), out_id, out_state, err);
	if (found != 0)
		return found;
	return take_first(db_query(db, SQL_PART_OVERDUE, err, db_i64(now_ms - STEP_PART_LIFE_MS)),
		out_id, out_state, err);
}

static int take_first(
	struct db_statement *rows, int64_t *out_id, int64_t *out_state, struct error *err)
{
	const int got = db_step(rows, err);
	if (got == 1) {
		*out_id = db_column_i64(rows, 0);
		*out_state = db_column_i64(rows, 1);
	}
	db_reset(rows);
	return got;
}

static int release(struct db *db, int64_t id, int64_t state, struct error *err)
{
	bool more = false;
	if (step_pin_release(db, -id, &more, err) != 0)
		return -1;
	if (more)
		return 0;
	return db_run(db, state == STEP_PART_PUBLISHED ? SQL_PART_RELEASED : SQL_PART_REMOVE, err,
		db_i64(id));
}
