#include "storage/run_tables/step_row.h"

#include <string.h>

#include "storage/db/row_sum.h"

static const char SQL_STEP_FIND[] =
	"SELECT " STEP_COLUMNS " FROM steps WHERE run = ?1 AND step = ?2";
static const char SQL_STEP_UPWARDS[] =
	"SELECT " STEP_COLUMNS " FROM steps WHERE run = ?1 AND step >= ?2 ORDER BY step";
static const char SQL_STEP_DOWNWARDS[] =
	"SELECT " STEP_COLUMNS " FROM steps WHERE run = ?1 AND step <= ?2 ORDER BY step DESC";
static const char SQL_STEP_OLDEST[] =
	"SELECT " STEP_COLUMNS " FROM steps WHERE run = ?1 AND state = 0 ORDER BY step LIMIT 1";
static const char SQL_STEP_GOOD_BELOW[] =
	"SELECT " STEP_COLUMNS
	" FROM steps WHERE run = ?1 AND state = 0 AND step <= ?2 AND verified <> 2 ORDER BY step DESC LIMIT 1";
static const char SQL_STEP_ANCHOR_ABOVE[] =
	"SELECT step FROM steps WHERE run = ?1 AND state = 0 AND has_anchor = 1 AND step > ?2 ORDER BY step LIMIT 1";
static const char SQL_STEP_ROOT_ANCHOR[] =
	"SELECT step FROM steps WHERE run = ?1 AND state = 0 AND has_anchor = 1 AND step <= ?2 AND verified <> 2 ORDER BY step DESC LIMIT 1";
static const char SQL_STEP_ROOT_MADE[] =
	"SELECT step FROM steps WHERE run = ?1 AND state = 0 AND made IS NOT NULL AND step <= ?2 AND verified <> 2 ORDER BY step DESC LIMIT 1";
static const char SQL_STEP_KEPT_FROM[] =
	"SELECT " STEP_COLUMNS
	" FROM steps WHERE run = ?1 AND state = 0 AND step >= ?2 ORDER BY step LIMIT 1";
static const char SQL_STEP_RELEASING[] = "SELECT id FROM steps WHERE state = 1 ORDER BY id LIMIT 1";
static const char SQL_STEP_OF_RUN[] = "SELECT id FROM steps WHERE run = ?1 ORDER BY step LIMIT 1";
static const char SQL_STEP_ADD[] =
	"INSERT INTO steps (run, step, state, digest, content, anchor_bytes, delta_bytes, created_ms, has_anchor,"
	" verified) VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
static const char SQL_STEP_COLLECT[] = "UPDATE steps SET state = 1 WHERE id = ?1";
static const char SQL_STEP_RELEASED[] = "UPDATE steps SET state = 2 WHERE id = ?1";
static const char SQL_STEP_REMOVE[] = "DELETE FROM steps WHERE id = ?1";
static const char SQL_STEP_UNPROVEN[] =
	"SELECT " STEP_COLUMNS
	", run FROM steps WHERE state = 0 AND verified = 0 AND id > ?1 ORDER BY id LIMIT 1";
static const char SQL_STEP_VERIFIED[] =
	"UPDATE steps SET verified = ?2, verify_error = ?3 WHERE id = ?1";
static const char SQL_STEP_REASON[] = "SELECT verify_error FROM steps WHERE id = ?1";
static const char SQL_MANIFEST_ADD[] =
	"INSERT INTO step_manifests (step, manifest, tensor_digests, checksum) VALUES (?1, ?2, ?3, ?4)";
static const char SQL_MANIFEST_GET[] =
	"SELECT manifest, tensor_digests, checksum FROM step_manifests WHERE step = ?1";
static const char SQL_MANIFEST_REMOVE[] = "DELETE FROM step_manifests WHERE step = ?1";

static void read_digest(struct db_statement *statement, int column, struct digest128 *out)
{
	const struct span bytes = db_column_blob(statement, column);
	memcpy(out->bytes, bytes.data, bytes.len == sizeof(out->bytes) ? bytes.len : 0);
}

void step_row_read(struct db_statement *scan, struct step_row *out)
{
	memset(out, 0, sizeof(*out));
	out->id = db_column_i64(scan, 0);
	out->step = (uint64_t)db_column_i64(scan, 1);
	out->state = (enum step_state)db_column_i64(scan, 2);
	read_digest(scan, 3, &out->digest);
	read_digest(scan, 4, &out->content);
	for (int kind = 0; kind < STEP_FORMS_MAX; kind++) {
		out->has_form[kind] = !db_column_is_null(scan, 5 + kind);
		out->form_bytes[kind] = (uint64_t)db_column_i64(scan, 5 + kind);
	}
	out->created_ms = db_column_i64(scan, 7);
	out->verified = (enum step_verified)db_column_i64(scan, 8);
	out->has_made = !db_column_is_null(scan, 9);
	out->made_depth = (unsigned)db_column_i64(scan, 9);
	out->made_bytes = (uint64_t)db_column_i64(scan, 10);
	out->made_until_ms = db_column_i64(scan, 11);
	out->wants_made = (enum step_wants)db_column_i64(scan, 12);
}

/* No stored step is above INT64_MAX, so a number above it is cut without meeting one. */
static int64_t bound(uint64_t step)
{
	return step > INT64_MAX ? INT64_MAX : (int64_t)step;
}

static struct db_statement *prepare_at(
	struct db *db, const char *sql, int64_t run, uint64_t step, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, sql, err);
	if (statement == NULL)
		return NULL;
	db_bind_i64(statement, 1, run);
	db_bind_i64(statement, 2, bound(step));
	return statement;
}

static int first_row(struct db_statement *statement, struct step_row *out, struct error *err)
{
	if (statement == NULL)
		return -1;
	const int got = db_step(statement, err);
	if (got == 1)
		step_row_read(statement, out);
	db_reset(statement);
	return got;
}

int step_row_find(
	struct db *db, int64_t run, uint64_t step, struct step_row *out, struct error *err)
{
	return first_row(prepare_at(db, SQL_STEP_FIND, run, step, err), out, err);
}

int step_row_good_at_or_below(
	struct db *db, int64_t run, uint64_t at, struct step_row *out, struct error *err)
{
	return first_row(prepare_at(db, SQL_STEP_GOOD_BELOW, run, at, err), out, err);
}

int step_row_oldest(struct db *db, int64_t run, struct step_row *out, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_STEP_OLDEST, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, run);
	return first_row(statement, out, err);
}

static int first_number(struct db_statement *statement, int64_t *out, struct error *err)
{
	if (statement == NULL)
		return -1;
	const int got = db_step(statement, err);
	if (got == 1)
		*out = db_column_i64(statement, 0);
	db_reset(statement);
	return got;
}

int step_row_root_at_or_below(
	struct db *db, int64_t run, uint64_t at, uint64_t *out_step, struct error *err)
{
	int64_t anchor = -1;
	int64_t made = -1;
	const int has_anchor =
		first_number(prepare_at(db, SQL_STEP_ROOT_ANCHOR, run, at, err), &anchor, err);
	const int has_made = has_anchor < 0
		? -1
		: first_number(prepare_at(db, SQL_STEP_ROOT_MADE, run, at, err), &made, err);
	*out_step = (uint64_t)(anchor > made ? anchor : made);
	return has_made < 0 ? -1 : has_anchor == 1 || has_made == 1;
}

int step_row_kept_from(
	struct db *db, int64_t run, uint64_t from, struct step_row *out, struct error *err)
{
	return first_row(prepare_at(db, SQL_STEP_KEPT_FROM, run, from, err), out, err);
}

int step_row_anchor_above(
	struct db *db, int64_t run, uint64_t above, uint64_t *out_step, struct error *err)
{
	int64_t step = 0;
	const int got =
		first_number(prepare_at(db, SQL_STEP_ANCHOR_ABOVE, run, above, err), &step, err);
	*out_step = (uint64_t)step;
	return got;
}

int step_row_find_releasing(struct db *db, int64_t *out_id, struct error *err)
{
	return first_number(db_prepare(db, SQL_STEP_RELEASING, err), out_id, err);
}

int step_row_find_of_run(struct db *db, int64_t run, int64_t *out_id, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_STEP_OF_RUN, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, run);
	return first_number(statement, out_id, err);
}

struct db_statement *step_row_scan(
	struct db *db, int64_t run, uint64_t from, bool downwards, struct error *err)
{
	return prepare_at(db, downwards ? SQL_STEP_DOWNWARDS : SQL_STEP_UPWARDS, run, from, err);
}

int step_row_add(struct db *db, int64_t run, struct step_row *row, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_STEP_ADD, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, run);
	db_bind_i64(statement, 2, (int64_t)row->step);
	db_bind_blob(statement, 3, span_of(row->digest.bytes, sizeof(row->digest.bytes)));
	db_bind_blob(statement, 4, span_of(row->content.bytes, sizeof(row->content.bytes)));
	for (int kind = 0; kind < STEP_FORMS_MAX; kind++)
		if (row->has_form[kind])
			db_bind_i64(statement, 5 + kind, (int64_t)row->form_bytes[kind]);
	db_bind_i64(statement, 7, row->created_ms);
	db_bind_i64(statement, 8, row->has_form[STEP_ANCHOR]);
	db_bind_i64(statement, 9, row->verified);
	if (db_execute(statement, err) != 0)
		return -1;
	row->id = db_last_id(db);
	return 0;
}

static int run_on_step(struct db *db, const char *sql, int64_t id, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, sql, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, id);
	return db_execute(statement, err);
}

int step_row_find_unproven(
	struct db *db, int64_t after, int64_t *out_run, struct step_row *out, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_STEP_UNPROVEN, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, after);
	const int got = db_step(statement, err);
	if (got == 1) {
		step_row_read(statement, out);
		*out_run = db_column_i64(statement, STEP_COLUMN_COUNT);
	}
	db_reset(statement);
	return got;
}

int step_row_set_verified(struct db *db, int64_t id, enum step_verified verified,
	struct span reason, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_STEP_VERIFIED, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, id);
	db_bind_i64(statement, 2, verified);
	if (reason.len > 0)
		db_bind_blob(statement, 3, reason);
	return db_execute(statement, err);
}

int step_row_load_reason(
	struct db *db, int64_t id, struct arena *arena, struct span *out, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_STEP_REASON, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, id);
	const int got = db_step(statement, err);
	if (got == 1)
		*out = arena_copy(arena, db_column_blob(statement, 0));
	db_reset(statement);
	return got < 0 ? -1 : 0;
}

int step_row_collect(struct db *db, int64_t id, struct error *err)
{
	return run_on_step(db, SQL_STEP_COLLECT, id, err) != 0
		? -1
		: run_on_step(db, SQL_MANIFEST_REMOVE, id, err);
}

int step_row_set_released(struct db *db, int64_t id, struct error *err)
{
	return run_on_step(db, SQL_STEP_RELEASED, id, err);
}

int step_row_remove(struct db *db, int64_t id, struct error *err)
{
	return run_on_step(db, SQL_MANIFEST_REMOVE, id, err) != 0
		? -1
		: run_on_step(db, SQL_STEP_REMOVE, id, err);
}

static int64_t manifest_sum(int64_t id, struct span manifest, struct span tensor_digests)
{
	return (int64_t)row_sum_bytes(
		row_sum_bytes(row_sum_number(0, id), manifest), tensor_digests);
}

int step_row_add_manifest(struct db *db, int64_t id, struct span manifest,
	struct span tensor_digests, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_MANIFEST_ADD, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, id);
	db_bind_blob(statement, 2, manifest);
	db_bind_blob(statement, 3, tensor_digests);
	db_bind_i64(statement, 4, manifest_sum(id, manifest, tensor_digests));
	return db_execute(statement, err);
}

int step_row_load_manifest(struct db *db, int64_t id, struct arena *arena,
	struct span *out_manifest, struct span *out_tensor_digests, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_MANIFEST_GET, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, id);
	const int got = db_step(statement, err);
	const bool intact = got == 1 &&
		manifest_sum(id, db_column_blob(statement, 0), db_column_blob(statement, 1)) ==
			db_column_i64(statement, 2);
	if (intact) {
		*out_manifest = arena_copy(arena, db_column_blob(statement, 0));
		if (out_tensor_digests != NULL)
			*out_tensor_digests = arena_copy(arena, db_column_blob(statement, 1));
	}
	db_reset(statement);
	if (got < 0)
		return -1;
	if (!intact)
		return error_set(
			err, ERROR_CORRUPT, "%s: the manifest of a step is damaged.", db_path(db));
	if (arena_overflowed(arena))
		return error_set(
			err, ERROR_NO_MEMORY, "The request's memory ran out while reading a step.");
	return 0;
}
