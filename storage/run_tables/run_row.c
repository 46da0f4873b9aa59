/* A run is one row, with its head and settings. Ending a run takes its name away, which frees the
 * name at once; the sweeper removes what belongs to the run in slices, and the row last. The schema
 * has a table of its own and is proven by the digest in the run's row. */
#include "storage/run_tables/run_row.h"

#include <string.h>

#include "storage/buckets/bucket_row.h"
#include "storage/core/run_feed.h"
#include "storage/run_tables/pin_row.h"
#include "storage/run_tables/run_settings.h"
#include "storage/run_tables/webhook_row.h"

/* A run with its rollback, which is a pin. */
#define RUN_COLUMNS                                                                           \
	"runs.id, bucket, epoch, head, head_digest, schema_digest, keep_steps, steps, bytes," \
	" runs.created_ms, settings, runs.name, parent_run, parent_step, parent_digest,"      \
	" pins.step, pins.created_ms"
#define RUN_TABLES \
	"runs LEFT JOIN pins ON pins.run = runs.id AND pins.name = CAST('" PIN_ROLLBACK "' AS BLOB)"
enum { RUN_NAME_COLUMN = 11, RUN_ROLLBACK_COLUMN = 15 };

static const char SQL_RUN_FIND[] =
	"SELECT " RUN_COLUMNS " FROM " RUN_TABLES " WHERE bucket = ?1 AND runs.name = ?2";
static const char SQL_RUN_FIND_ID[] =
	"SELECT " RUN_COLUMNS " FROM " RUN_TABLES " WHERE runs.id = ?1 AND runs.name IS NOT NULL";
static const char SQL_RUN_ACCOUNT[] =
	"SELECT buckets.account FROM runs JOIN buckets ON buckets.id = runs.bucket WHERE runs.id = ?1";
static const char SQL_RUN_OVERFULL[] =
	"SELECT id FROM runs WHERE id > ?1 AND name IS NOT NULL AND keep_steps > 0 AND steps > keep_steps ORDER BY id LIMIT 1";
static const char SQL_RUN_LIST[] =
	"SELECT " RUN_COLUMNS " FROM " RUN_TABLES
	" WHERE bucket = ?1 AND runs.name > ?2 ORDER BY runs.name LIMIT ?3";
static const char SQL_RUN_LATEST[] =
	"SELECT runs.id FROM runs LEFT JOIN steps ON steps.run = runs.id AND steps.step = runs.head WHERE runs.name IS NOT NULL"
	" ORDER BY steps.created_ms DESC, runs.id DESC LIMIT ?1";
/* CROSS JOIN keeps the order of the tables: buckets by their names, which is the order of the
 * result. */
#define RUN_PLACE_COLUMNS "runs.id, buckets.id, buckets.name, accounts.namespace, runs.name"
#define RUN_PLACE_ACCOUNT " JOIN accounts ON accounts.id = buckets.account"
static const char SQL_RUN_LIST_ALL[] =
	"SELECT " RUN_PLACE_COLUMNS
	" FROM buckets CROSS JOIN runs ON runs.bucket = buckets.id" RUN_PLACE_ACCOUNT
	" WHERE buckets.name >= ?1 AND runs.name > CASE WHEN buckets.name = ?1 THEN ?2 ELSE x'' END"
	" ORDER BY buckets.name, runs.name LIMIT ?3";
static const char SQL_RUN_PLACE[] =
	"SELECT " RUN_PLACE_COLUMNS
	" FROM runs JOIN buckets ON buckets.id = runs.bucket" RUN_PLACE_ACCOUNT
	" WHERE runs.id = ?1 AND runs.name IS NOT NULL";
static const char SQL_RUN_ADD[] =
	"INSERT INTO runs (bucket, name, epoch, keep_steps, steps, bytes, created_ms) VALUES (?1, ?2, ?3, ?4, 0, 0, ?5)";
static const char SQL_RUN_UPDATE[] =
	"UPDATE runs SET epoch = ?2, head = ?3, head_digest = ?4, schema_digest = ?5, steps = ?6, bytes = ?7 WHERE id = ?1";
static const char SQL_RUN_ANY[] =
	"SELECT 1 FROM runs WHERE bucket = ?1 AND name IS NOT NULL LIMIT 1";
static const char SQL_RUN_COUNT_IN_BUCKET[] =
	"SELECT count(*) FROM (SELECT 1 FROM runs WHERE bucket = ?1 AND name IS NOT NULL LIMIT ?2)";
static const char SQL_RUN_NAMES[] =
	"SELECT id, name FROM runs WHERE bucket = ?1 AND name IS NOT NULL LIMIT ?2";
static const char SQL_RUN_COUNT[] = "SELECT COUNT(*) FROM runs WHERE name IS NOT NULL";
static const char SQL_RUN_END[] =
	"UPDATE runs SET name = NULL, adopts = 0, hot_load = NULL WHERE id = ?1";
static const char SQL_RUN_ENDED[] = "SELECT id FROM runs WHERE name IS NULL ORDER BY id LIMIT 1";
static const char SQL_RUN_REMOVE[] = "DELETE FROM runs WHERE id = ?1";
static const char SQL_RUN_PARENT[] =
	"UPDATE runs SET parent_run = ?2, parent_step = ?3, parent_digest = ?4 WHERE id = ?1";
static const char SQL_SCHEMA_ADD[] = "INSERT INTO run_schemas (run, schema) VALUES (?1, ?2)";
static const char SQL_SCHEMA_GET[] = "SELECT schema FROM run_schemas WHERE run = ?1";
static const char SQL_SCHEMA_REMOVE[] = "DELETE FROM run_schemas WHERE run = ?1";

struct run_list {
	struct span bucket;
	struct run_message *runs;
	size_t capacity; /* of `runs`; the statement gives no more rows */
	size_t count;
};

static int read_row(
	struct db *db, struct db_statement *statement, struct run_row *out, struct error *err);
static bool read_digest(struct db_statement *statement, int column, struct digest128 *out);
static int read_list(struct db *db, struct db_statement *statement, struct arena *arena,
	struct run_list *list, struct error *err);
static void read_place(struct db_statement *statement, struct arena *arena, struct run_place *out);
static struct db_value digest_value(const struct digest128 *digest);

int run_row_find(
	struct db *db, int64_t bucket, struct span name, struct run_row *out, struct error *err)
{
	struct db_statement *const row =
		db_query(db, SQL_RUN_FIND, err, db_i64(bucket), db_blob(name));
	int got = db_step(row, err);
	if (got == 1 && read_row(db, row, out, err) != 0)
		got = -1;
	db_reset(row);
	return got;
}

int run_row_find_id(struct db *db, int64_t id, struct arena *arena, struct run_row *out,
	struct span *out_name, struct error *err)
{
	ASSERT(out_name == NULL || arena != NULL);
	struct db_statement *const row = db_query(db, SQL_RUN_FIND_ID, err, db_i64(id));
	int got = db_step(row, err);
	if (got == 1 && read_row(db, row, out, err) != 0)
		got = -1;
	if (got == 1 && out_name != NULL)
		*out_name = arena_copy(arena, db_column_blob(row, RUN_NAME_COLUMN));
	db_reset(row);
	return got;
}

int run_row_find_account(struct db *db, int64_t run, int64_t *out_account, struct error *err)
{
	return db_find_i64(db, SQL_RUN_ACCOUNT, out_account, err, db_i64(run));
}

int run_row_find_overfull(struct db *db, int64_t after, int64_t *out_id, struct error *err)
{
	return db_find_i64(db, SQL_RUN_OVERFULL, out_id, err, db_i64(after));
}

int run_row_need(struct db *db, const struct run_ref *ref, struct run_row *out, struct error *err)
{
	const struct span bucket = ref->bucket.name;
	int64_t bucket_id;
	if (bucket_row_find(db, ref->bucket, &bucket_id, err) != 0)
		return -1;
	const int got = run_row_find(db, bucket_id, ref->name, out, err);
	if (got == 0)
		return error_set(err, ERROR_NO_RUN, "The run '%.*s/%.*s' does not exist.",
			(int)span_slice(bucket, 0, 128).len, (const char *)bucket.data,
			(int)span_slice(ref->name, 0, 128).len, (const char *)ref->name.data);
	return got == 1 ? 0 : -1;
}

int run_row_latest(
	struct db *db, size_t limit, int64_t *out_ids, size_t *out_count, struct error *err)
{
	struct db_statement *const rows = db_query(db, SQL_RUN_LATEST, err, db_i64((int64_t)limit));
	int got;
	*out_count = 0;
	while ((got = db_step(rows, err)) == 1) {
		ASSERT(*out_count < limit);
		out_ids[(*out_count)++] = db_column_i64(rows, 0);
	}
	db_reset(rows);
	return got;
}

uint64_t run_row_target(const struct run_row *row)
{
	return row->rollback.is_on ? row->rollback.step : row->head;
}

void run_row_message(const struct run_row *row, const struct run_ref *ref, struct run_message *out)
{
	*out = (struct run_message){
		.bucket = ref->bucket.name,
		.run = ref->name,
		.epoch = row->epoch,
		.has_head = row->has_head,
		.head = row->head,
		.head_digest = row->head_digest,
		.has_schema = row->has_schema,
		.schema_digest = row->schema_digest,
		.steps = row->steps,
		.bytes = row->bytes,
		.settings = row->settings,
		.created_ms = row->created_ms,
		.parent = row->parent,
		.rollback = row->rollback,
	};
}

int run_row_list(struct db *db, const struct run_scan *scan, struct arena *arena,
	struct run_message **out, size_t *out_count, struct error *err)
{
	int64_t bucket_id;
	if (bucket_row_find(db, scan->bucket, &bucket_id, err) != 0)
		return -1;
	struct run_list list = {.bucket = scan->bucket.name, .capacity = scan->limit + 1};
	list.runs = arena_take_array(arena, list.capacity, sizeof(*list.runs));
	struct db_statement *const rows = db_query(db, SQL_RUN_LIST, err, db_i64(bucket_id),
		db_blob(scan->after), db_i64((int64_t)scan->limit));
	if (rows == NULL)
		return -1;
	const int result = read_list(db, rows, arena, &list, err);
	db_reset(rows);
	*out = list.runs;
	*out_count = list.count;
	return result;
}

int run_row_list_all(struct db *db, const struct run_place_scan *scan, struct arena *arena,
	struct run_place *out, size_t *out_count, struct error *err)
{
	struct db_statement *const rows = db_query(db, SQL_RUN_LIST_ALL, err,
		db_blob(scan->after_bucket), db_blob(scan->after), db_i64((int64_t)scan->limit));
	int got;
	*out_count = 0;
	while ((got = db_step(rows, err)) == 1) {
		ASSERT(*out_count < scan->limit);
		read_place(rows, arena, &out[(*out_count)++]);
	}
	db_reset(rows);
	return got;
}

int run_row_find_place(
	struct db *db, int64_t id, struct arena *arena, struct run_place *out, struct error *err)
{
	struct db_statement *const row = db_query(db, SQL_RUN_PLACE, err, db_i64(id));
	const int got = db_step(row, err);
	if (got == 1)
		read_place(row, arena, out);
	db_reset(row);
	return got;
}

int run_row_add(struct db *db, struct span name, struct run_row *row, struct error *err)
{
	ASSERT(row->bucket > 0 && name.len > 0 && name.len <= RUN_NAME_MAX_BYTES);
	if (db_insert(db, SQL_RUN_ADD, &row->id, err, db_i64(row->bucket), db_blob(name),
		    db_i64((int64_t)row->epoch), db_i64((int64_t)row->settings.keep_steps),
		    db_i64(row->created_ms)) != 0)
		return -1;
	run_feed_note(db_context(db, DB_CONTEXT_RUN_FEED), row->id);
	return run_settings_store(db, row->id, &row->settings, err);
}

/* Readers of the feed that get more notes than it holds begin anew, so more are not needed. */
int run_row_note_rename(struct db *db, int64_t bucket, struct span name, struct error *err)
{
	struct run_feed *const feed = db_context(db, DB_CONTEXT_RUN_FEED);
	struct db_statement *const rows =
		db_query(db, SQL_RUN_NAMES, err, db_i64(bucket), db_i64(RUN_FEED_CHANGES));
	int got;
	while ((got = db_step(rows, err)) == 1) {
		const struct run_change end = {.run = db_column_i64(rows, 0),
			.bucket_id = bucket,
			.bucket = name,
			.name = db_column_blob(rows, 1)};
		run_feed_note_end(feed, &end);
		run_feed_note(feed, end.run);
	}
	db_reset(rows);
	return got;
}

int run_row_update(struct db *db, const struct run_row *row, struct error *err)
{
	ASSERT(row->id > 0);
	run_feed_note(db_context(db, DB_CONTEXT_RUN_FEED), row->id);
	return db_run(db, SQL_RUN_UPDATE, err, db_i64(row->id), db_i64((int64_t)row->epoch),
		db_i64_or_null(row->has_head, (int64_t)row->head),
		row->has_head ? digest_value(&row->head_digest) : db_null(),
		row->has_schema ? digest_value(&row->schema_digest) : db_null(),
		db_i64((int64_t)row->steps), db_i64((int64_t)row->bytes));
}

int run_row_set_parent(
	struct db *db, int64_t run, const struct run_parent *parent, struct error *err)
{
	ASSERT(parent->run[0] != '\0');
	return db_run(db, SQL_RUN_PARENT, err, db_i64(run), db_blob(span_text(parent->run)),
		db_i64((int64_t)parent->step), digest_value(&parent->digest));
}

int run_row_set_schema(struct db *db, int64_t run, struct span schema, struct error *err)
{
	return db_run(db, SQL_SCHEMA_ADD, err, db_i64(run), db_blob(schema));
}

int run_row_load_schema(
	struct db *db, const struct run_row *row, struct buffer *out, struct error *err)
{
	struct db_statement *const statement = db_query(db, SQL_SCHEMA_GET, err, db_i64(row->id));
	const int got = db_step(statement, err);
	const struct span text = got == 1 ? db_column_blob(statement, 0) : span_of(NULL, 0);
	const struct digest128 digest = xxh3_128(text);
	const bool intact = got == 1 && digest128_equal(&digest, &row->schema_digest);
	if (intact)
		buffer_add_span(out, text);
	db_reset(statement);
	if (got < 0)
		return -1;
	if (!intact)
		return error_set(err, ERROR_CORRUPT, "%s: the schema of run %lld is damaged.",
			db_path(db), (long long)row->id);
	return buffer_check(out, "the schema of a run", err);
}

int run_row_any_in_bucket(struct db *db, int64_t bucket, bool *out_any, struct error *err)
{
	const int got = db_exists(db, SQL_RUN_ANY, err, db_i64(bucket));
	*out_any = got == 1;
	return got < 0 ? -1 : 0;
}

int run_row_count(struct db *db, uint64_t *out, struct error *err)
{
	int64_t count = 0;
	const int found = db_find_i64(db, SQL_RUN_COUNT, &count, err);
	*out = (uint64_t)count;
	return found < 0 ? -1 : 0;
}

int run_row_count_in_bucket(
	struct db *db, int64_t bucket, uint64_t most, uint64_t *out_count, struct error *err)
{
	int64_t count = 0;
	if (db_find_i64(db, SQL_RUN_COUNT_IN_BUCKET, &count, err, db_i64(bucket),
		    db_i64((int64_t)most)) < 0)
		return -1;
	*out_count = (uint64_t)count;
	return 0;
}

int run_row_end(struct db *db, int64_t run, struct error *err)
{
	return db_run(db, SQL_RUN_END, err, db_i64(run));
}

int run_row_find_ended(struct db *db, int64_t *out_run, bool *out_found, struct error *err)
{
	const int got = db_find_i64(db, SQL_RUN_ENDED, out_run, err);
	*out_found = got == 1;
	return got < 0 ? -1 : 0;
}

int run_row_remove(struct db *db, int64_t run, struct error *err)
{
	if (db_run(db, SQL_SCHEMA_REMOVE, err, db_i64(run)) != 0 ||
		webhook_row_remove_of_run(db, run, err) != 0)
		return -1;
	return db_run(db, SQL_RUN_REMOVE, err, db_i64(run));
}

static int read_row(
	struct db *db, struct db_statement *statement, struct run_row *out, struct error *err)
{
	memset(out, 0, sizeof(*out));
	out->id = db_column_i64(statement, 0);
	out->bucket = db_column_i64(statement, 1);
	out->epoch = (uint64_t)db_column_i64(statement, 2);
	out->has_head = !db_column_is_null(statement, 3);
	out->head = (uint64_t)db_column_i64(statement, 3);
	read_digest(statement, 4, &out->head_digest);
	out->has_schema = read_digest(statement, 5, &out->schema_digest);
	out->steps = (uint64_t)db_column_i64(statement, 7);
	out->bytes = (uint64_t)db_column_i64(statement, 8);
	out->created_ms = db_column_i64(statement, 9);
	out->rollback = (struct rollback_message){
		.is_on = !db_column_is_null(statement, RUN_ROLLBACK_COLUMN),
		.step = (uint64_t)db_column_i64(statement, RUN_ROLLBACK_COLUMN),
		.created_ms = db_column_i64(statement, RUN_ROLLBACK_COLUMN + 1)};
	struct digest128 parent = {{0}};
	if (!db_column_is_null(statement, 12) && read_digest(statement, 14, &parent))
		out->parent = run_parent_of(db_column_blob(statement, 12),
			(uint64_t)db_column_i64(statement, 13), &parent);
	return run_settings_read(db, db_column_blob(statement, 10),
		(uint64_t)db_column_i64(statement, 6), &out->settings, err);
}

/* False, and *out stays as it was, unless the column holds a value of a digest's size. */
static bool read_digest(struct db_statement *statement, int column, struct digest128 *out)
{
	const struct span bytes = db_column_blob(statement, column);
	if (bytes.len != sizeof(out->bytes))
		return false;
	memcpy(out->bytes, bytes.data, bytes.len);
	return true;
}

static int read_list(struct db *db, struct db_statement *statement, struct arena *arena,
	struct run_list *list, struct error *err)
{
	struct run_ref ref = run_named(arena_copy(arena, list->bucket), span_of(NULL, 0));
	int got = 0;
	while (!arena_overflowed(arena) && (got = db_step(statement, err)) == 1) {
		struct run_row row;
		if (read_row(db, statement, &row, err) != 0)
			return -1;
		ref.name = arena_copy(arena, db_column_blob(statement, RUN_NAME_COLUMN));
		ASSERT(list->count < list->capacity);
		run_row_message(&row, &ref, &list->runs[list->count++]);
	}
	if (arena_overflowed(arena))
		return error_set(
			err, ERROR_NO_MEMORY, "The request's memory ran out while listing runs.");
	return got < 0 ? -1 : 0;
}

static void read_place(struct db_statement *statement, struct arena *arena, struct run_place *out)
{
	*out = (struct run_place){.id = db_column_i64(statement, 0),
		.bucket = {.name = arena_copy(arena, db_column_blob(statement, 2)),
			.id = db_column_i64(statement, 1)},
		.owner = arena_copy(arena, db_column_blob(statement, 3)),
		.name = arena_copy(arena, db_column_blob(statement, 4))};
}

/* Borrowed from the digest. */
static struct db_value digest_value(const struct digest128 *digest)
{
	return db_blob(span_of(digest->bytes, sizeof(digest->bytes)));
}
