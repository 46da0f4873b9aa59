/* Searches for paths walk many rows of `steps`, so these are small. The manifest has a table of its
 * own, with a checksum. A removed step loses its manifest at once; its row stays as a tombstone.
 * The numbers in the statements are those of enum step_state and enum step_verified. */
#include "storage/run_tables/step_row.h"

#include <string.h>

#include "storage/db/row_sum.h"
#include "storage/run_tables/step_changes_row.h"

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

static void read_digest(struct db_statement *statement, int column, struct digest128 *out);
static int first_row(struct db_statement *statement, struct step_row *out, struct error *err);
static struct db_statement *query_at(
	struct db *db, const char *sql, int64_t run, uint64_t step, struct error *err);
static int remove_rest(struct db *db, int64_t id, struct error *err);
static int64_t bound(uint64_t step);
static struct db_value digest_value(const struct digest128 *digest);
static struct db_value form_value(const struct step_row *row, enum step_form_kind kind);
static int64_t manifest_sum(int64_t id, struct span manifest, struct span tensor_digests);

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

int step_row_find(
	struct db *db, int64_t run, uint64_t step, struct step_row *out, struct error *err)
{
	return first_row(query_at(db, SQL_STEP_FIND, run, step, err), out, err);
}

int step_row_good_at_or_below(
	struct db *db, int64_t run, uint64_t at, struct step_row *out, struct error *err)
{
	return first_row(query_at(db, SQL_STEP_GOOD_BELOW, run, at, err), out, err);
}

int step_row_oldest(struct db *db, int64_t run, struct step_row *out, struct error *err)
{
	return first_row(db_query(db, SQL_STEP_OLDEST, err, db_i64(run)), out, err);
}

int step_row_root_at_or_below(
	struct db *db, int64_t run, uint64_t at, uint64_t *out_step, struct error *err)
{
	int64_t anchor = -1;
	int64_t made = -1;
	const int has_anchor =
		db_find_i64(db, SQL_STEP_ROOT_ANCHOR, &anchor, err, db_i64(run), db_i64(bound(at)));
	const int has_made = has_anchor < 0
		? -1
		: db_find_i64(db, SQL_STEP_ROOT_MADE, &made, err, db_i64(run), db_i64(bound(at)));
	*out_step = (uint64_t)(anchor > made ? anchor : made);
	return has_made < 0 ? -1 : has_anchor == 1 || has_made == 1;
}

int step_row_kept_from(
	struct db *db, int64_t run, uint64_t from, struct step_row *out, struct error *err)
{
	return first_row(query_at(db, SQL_STEP_KEPT_FROM, run, from, err), out, err);
}

int step_row_anchor_above(
	struct db *db, int64_t run, uint64_t above, uint64_t *out_step, struct error *err)
{
	int64_t step = 0;
	const int got = db_find_i64(
		db, SQL_STEP_ANCHOR_ABOVE, &step, err, db_i64(run), db_i64(bound(above)));
	*out_step = (uint64_t)step;
	return got;
}

int step_row_find_releasing(struct db *db, int64_t *out_id, struct error *err)
{
	return db_find_i64(db, SQL_STEP_RELEASING, out_id, err);
}

int step_row_find_of_run(struct db *db, int64_t run, int64_t *out_id, struct error *err)
{
	return db_find_i64(db, SQL_STEP_OF_RUN, out_id, err, db_i64(run));
}

struct db_statement *step_row_scan(
	struct db *db, int64_t run, uint64_t from, bool downwards, struct error *err)
{
	return query_at(db, downwards ? SQL_STEP_DOWNWARDS : SQL_STEP_UPWARDS, run, from, err);
}

int step_row_add(struct db *db, int64_t run, struct step_row *row, struct error *err)
{
	ASSERT(row->step <= INT64_MAX && row->state == STEP_KEPT);
	ASSERT(row->has_form[STEP_ANCHOR] || row->has_form[STEP_DELTA]);
	return db_insert(db, SQL_STEP_ADD, &row->id, err, db_i64(run), db_i64((int64_t)row->step),
		digest_value(&row->digest), digest_value(&row->content),
		form_value(row, STEP_ANCHOR), form_value(row, STEP_DELTA), db_i64(row->created_ms),
		db_i64(row->has_form[STEP_ANCHOR]), db_i64(row->verified));
}

int step_row_find_unproven(
	struct db *db, int64_t after, int64_t *out_run, struct step_row *out, struct error *err)
{
	struct db_statement *const row = db_query(db, SQL_STEP_UNPROVEN, err, db_i64(after));
	const int got = db_step(row, err);
	if (got == 1) {
		step_row_read(row, out);
		*out_run = db_column_i64(row, STEP_COLUMN_COUNT);
	}
	db_reset(row);
	return got;
}

int step_row_set_verified(struct db *db, int64_t id, enum step_verified verified,
	struct span reason, struct error *err)
{
	ASSERT(verified != STEP_UNPROVEN);
	return db_run(db, SQL_STEP_VERIFIED, err, db_i64(id), db_i64(verified),
		db_blob_or_null(reason.len > 0, reason));
}

int step_row_load_reason(
	struct db *db, int64_t id, struct arena *arena, struct span *out, struct error *err)
{
	return db_find_blob(db, SQL_STEP_REASON, arena, out, err, db_i64(id)) < 0 ? -1 : 0;
}

int step_row_collect(struct db *db, int64_t id, struct error *err)
{
	return db_run(db, SQL_STEP_COLLECT, err, db_i64(id)) != 0 ? -1 : remove_rest(db, id, err);
}

int step_row_set_released(struct db *db, int64_t id, struct error *err)
{
	return db_run(db, SQL_STEP_RELEASED, err, db_i64(id));
}

int step_row_remove(struct db *db, int64_t id, struct error *err)
{
	return remove_rest(db, id, err) != 0 ? -1 : db_run(db, SQL_STEP_REMOVE, err, db_i64(id));
}

static int remove_rest(struct db *db, int64_t id, struct error *err)
{
	return db_run(db, SQL_MANIFEST_REMOVE, err, db_i64(id)) != 0
		? -1
		: step_changes_row_remove(db, id, err);
}

int step_row_add_manifest(struct db *db, int64_t id, struct span manifest,
	struct span tensor_digests, struct error *err)
{
	ASSERT(id > 0 && manifest.len > 0);
	return db_run(db, SQL_MANIFEST_ADD, err, db_i64(id), db_blob(manifest),
		db_blob(tensor_digests), db_i64(manifest_sum(id, manifest, tensor_digests)));
}

int step_row_load_manifest(struct db *db, int64_t id, struct arena *arena,
	struct span *out_manifest, struct span *out_tensor_digests, struct error *err)
{
	struct db_statement *const row = db_query(db, SQL_MANIFEST_GET, err, db_i64(id));
	const int got = db_step(row, err);
	const bool intact = got == 1 &&
		manifest_sum(id, db_column_blob(row, 0), db_column_blob(row, 1)) ==
			db_column_i64(row, 2);
	if (intact) {
		*out_manifest = arena_copy(arena, db_column_blob(row, 0));
		if (out_tensor_digests != NULL)
			*out_tensor_digests = arena_copy(arena, db_column_blob(row, 1));
	}
	db_reset(row);
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

static void read_digest(struct db_statement *statement, int column, struct digest128 *out)
{
	const struct span bytes = db_column_blob(statement, column);
	memcpy(out->bytes, bytes.data, bytes.len == sizeof(out->bytes) ? bytes.len : 0);
}

static int first_row(struct db_statement *statement, struct step_row *out, struct error *err)
{
	const int got = db_step(statement, err);
	if (got == 1)
		step_row_read(statement, out);
	db_reset(statement);
	return got;
}

static struct db_statement *query_at(
	struct db *db, const char *sql, int64_t run, uint64_t step, struct error *err)
{
	return db_query(db, sql, err, db_i64(run), db_i64(bound(step)));
}

/* No row has a step above INT64_MAX, so a higher number may be cut. */
static int64_t bound(uint64_t step)
{
	return step > INT64_MAX ? INT64_MAX : (int64_t)step;
}

/* Borrowed from the digest. */
static struct db_value digest_value(const struct digest128 *digest)
{
	return db_blob(span_of(digest->bytes, sizeof(digest->bytes)));
}

static struct db_value form_value(const struct step_row *row, enum step_form_kind kind)
{
	return db_i64_or_null(row->has_form[kind], (int64_t)row->form_bytes[kind]);
}

static int64_t manifest_sum(int64_t id, struct span manifest, struct span tensor_digests)
{
	return (int64_t)row_sum_bytes(
		row_sum_bytes(row_sum_number(0, id), manifest), tensor_digests);
}
