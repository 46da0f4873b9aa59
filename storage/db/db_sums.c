/* SQLite reports each row before it changes, with its old and its new content ("preupdate hook").
 * When a failed statement, a savepoint or a transaction is rolled back, the sums are rolled back
 * too.
 *
 * SQLite reports a row that ALTER TABLE ADD COLUMN left short without the default of the column. A
 * migration that adds one must therefore write all rows of the table again (UPDATE t SET c = c). */
#include "storage/db/db_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/db/table_sums.h"

struct db_sums {
	struct db *db;
	struct table_sums now;
	struct table_sum savepoint[TABLE_SUMS_MAX]; /* copies of `now`, to return to */
	struct table_sum statement[TABLE_SUMS_MAX];
	int64_t change; /* the number of the last committed change */
	bool is_known;  /* `now` and `change` are what the database says */
	bool is_dirty;  /* rows have changed since the begin */
	bool is_unsure; /* `now` may differ from the tables, for the reason `why` */
	bool savepoint_is_unsure;
	struct error why;
	struct row_digest digest;
	struct db_rows *rows; /* NULL: nobody wants them */
};

static const char SQL_CHANGE[] = "SELECT change FROM sums";
static const char SQL_LOAD[] = "SELECT tables FROM sums";
static const char SQL_STORE[] = "UPDATE sums SET change = ?1, tables = ?2";
static const char SQL_FIRST[] =
	"INSERT OR REPLACE INTO sums (one, change, tables) VALUES (1, ?1, ?2)";
static const char SQL_TABLES[] =
	"SELECT 'sqlite_schema' UNION ALL SELECT name FROM sqlite_schema"
	" WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> 'sums'";

typedef int take_value(sqlite3 *handle, int column, sqlite3_value **out);

static void db_sums_note_row(void *owner, sqlite3 *handle, int operation, const char *schema,
	const char *table, sqlite3_int64 old_id, sqlite3_int64 new_id);
static bool is_counted(const char *table);
static uint64_t digest_row(struct db_sums *sums, sqlite3 *handle, take_value *take);
static void add_value(struct row_digest *digest, sqlite3_value *value);
static void note_unread(struct db_sums *sums);
static int store(struct db_sums *sums, const char *sql, struct error *err);
static void copy_tables(struct table_sum *to, const struct table_sum *from);
static int count_rows(sqlite3_stmt *rows, struct table_sum *out);
static uint64_t digest_result(struct row_digest *digest, sqlite3_stmt *row);
static int make_row(struct db *db, struct error *err);
static int establish(struct db_sums *sums, struct error *err);

struct db_sums *db_sums_new(struct db *db)
{
	struct db_sums *sums = memory_new(sizeof(*sums));
	sums->db = db;
	row_digest_init(&sums->digest);
	sqlite3_preupdate_hook(db->handle, db_sums_note_row, sums);
	return sums;
}

void db_sums_free(struct db_sums *sums)
{
	if (sums == NULL)
		return;
	sqlite3_preupdate_hook(sums->db->handle, NULL, NULL);
	row_digest_release(&sums->digest);
	db_rows_free(sums->rows);
	free(sums);
}

int db_sums_load(struct db *db, struct table_sums *out, struct error *err)
{
	struct db_statement *statement = db_query(db, SQL_LOAD, err);
	int got = db_step(statement, err);
	int result = got == 0 ? error_set(err, ERROR_NOT_FOUND,
					"The catalog has no counts and sums of its tables.")
			      : -1;
	if (got == 1 && db_column_blob(statement, 0).len == 0)
		result = error_set(err, ERROR_NOT_FOUND,
			"A migration has changed the tables of the catalog, and they were not counted since.");
	else if (got == 1)
		result = table_sums_decode(db_column_blob(statement, 0), out, err);
	db_reset(statement);
	return result;
}

int db_sums_total(struct db *db, uint64_t *out, struct error *err)
{
	struct table_sums *sums = memory_new(sizeof(*sums));
	const int result = db_sums_load(db, sums, err);
	*out = table_sums_total(sums);
	free(sums);
	return result;
}

int db_sums_begin(struct db_sums *sums, struct error *err)
{
	if (sums == NULL)
		return 0;
	int64_t change = 0;
	if (db_find_i64(sums->db, SQL_CHANGE, &change, err) < 0)
		return -1;
	if ((!sums->is_known || change != sums->change) &&
		db_sums_load(sums->db, &sums->now, err) != 0)
		return -1;
	sums->change = change;
	sums->is_known = false; /* until the commit */
	sums->is_dirty = false;
	sums->is_unsure = false;
	db_rows_begin(sums->rows);
	return 0;
}

int db_sums_commit(struct db_sums *sums, struct error *err)
{
	if (sums == NULL)
		return 0;
	if (db_sums_check(sums, err) != 0 || (sums->is_dirty && store(sums, SQL_STORE, err) != 0))
		return -1;
	return 0;
}

void db_sums_committed(struct db_sums *sums)
{
	if (sums == NULL)
		return;
	sums->change += sums->is_dirty;
	sums->is_known = true;
}

void db_sums_rollback(struct db_sums *sums)
{
	if (sums != NULL)
		sums->is_known = false;
}

void db_sums_doubt(struct db_sums *sums, const struct error *why)
{
	if (sums == NULL || sums->is_unsure)
		return;
	sums->is_unsure = true;
	sums->why = *why;
}

int db_sums_check(const struct db_sums *sums, struct error *err)
{
	if (sums == NULL || !sums->is_unsure)
		return 0;
	*err = sums->why;
	return -1;
}

void db_sums_savepoint(struct db_sums *sums)
{
	if (sums == NULL)
		return;
	copy_tables(sums->savepoint, sums->now.tables);
	db_rows_savepoint(sums->rows);
	sums->savepoint_is_unsure = sums->is_unsure;
}

void db_sums_savepoint_rollback(struct db_sums *sums)
{
	if (sums == NULL)
		return;
	copy_tables(sums->now.tables, sums->savepoint);
	db_rows_savepoint_rollback(sums->rows);
	sums->is_unsure = sums->savepoint_is_unsure;
}

void db_sums_statement(struct db_sums *sums)
{
	if (sums == NULL)
		return;
	copy_tables(sums->statement, sums->now.tables);
	db_rows_statement(sums->rows);
}

void db_sums_statement_rollback(struct db_sums *sums)
{
	if (sums == NULL)
		return;
	copy_tables(sums->now.tables, sums->statement);
	db_rows_statement_rollback(sums->rows);
}

int64_t db_sums_change(const struct db_sums *sums)
{
	return sums == NULL ? 0 : sums->change;
}

void db_sums_keep_rows(struct db_sums *sums, struct db_rows *rows)
{
	ASSERT(sums->rows == NULL);
	sums->rows = rows;
}

int db_sums_record(const struct db_sums *sums, struct db_record *out, struct error *err)
{
	if (sums == NULL || !sums->is_dirty || sums->rows == NULL)
		return 0;
	out->change = sums->change + 1;
	out->sums = table_sums_total(&sums->now);
	return db_rows_changed(sums->rows, &out->rows, err) == 0 ? 1 : -1;
}

int db_sums_establish(struct db *db, int64_t change, struct error *err)
{
	ASSERT(db->sums == NULL);
	db->sums = db_sums_new(db);
	db->sums->change = change - 1;
	int result = make_row(db, err);
	db_sums_free(db->sums);
	db->sums = NULL;
	return result;
}

int db_sums_count(struct db *db, const char *table, struct table_sum *out, struct error *err)
{
	static const char schema[] = "SELECT type, name, tbl_name, sql FROM sqlite_schema";
	char sql[TABLE_NAME_BYTES + 40];
	sqlite3_stmt *rows = NULL;
	snprintf(sql, sizeof(sql), "SELECT * FROM \"%s\" NOT INDEXED", table);
	int got = sqlite3_prepare_v2(
		db->handle, strcmp(table, "sqlite_schema") == 0 ? schema : sql, -1, &rows, NULL);
	if (got == SQLITE_OK)
		got = count_rows(rows, out);
	int result = got == SQLITE_DONE ? 0 : db_fail(db, table, err);
	sqlite3_finalize(rows);
	return result;
}

int db_sums_list(struct db *db, struct table_sums *out, struct error *err)
{
	struct db_statement *tables = db_query(db, SQL_TABLES, err);
	int got = tables == NULL ? -1 : 0;
	out->count = 0;
	while (got >= 0 && out->count < TABLE_SUMS_MAX && (got = db_step(tables, err)) == 1) {
		char name[TABLE_NAME_BYTES];
		struct span text = db_column_blob(tables, 0);
		snprintf(name, sizeof(name), "%.*s", (int)text.len, text.data);
		table_sums_place(out, name);
	}
	db_reset(tables);
	return got < 0 ? -1 : 0;
}

int db_keep_sums(struct db *db, struct error *err)
{
	ASSERT(db->sums == NULL);
	struct table_sums *said = memory_new(sizeof(*said));
	int result = db_sums_load(db, said, err);
	bool lacks_row = result != 0 && err->kind == ERROR_NOT_FOUND;
	free(said);
	if (result != 0 && !lacks_row)
		return -1;
	db->sums = db_sums_new(db);
	if (db_find_i64(db, SQL_CHANGE, &db->sums->change, err) < 0)
		return -1;
	return lacks_row ? make_row(db, err) : 0;
}

static void db_sums_note_row(void *owner, sqlite3 *handle, int operation, const char *schema,
	const char *table, sqlite3_int64 old_id, sqlite3_int64 new_id)
{
	struct db_sums *sums = owner;
	(void)old_id, (void)new_id;
	if (strcmp(schema, "main") != 0 || !is_counted(table))
		return;
	struct table_sum *sum = &sums->now.tables[table_sums_place(&sums->now, table)];
	if (operation != SQLITE_INSERT) {
		sum->rows--;
		sum->sum -= digest_row(sums, handle, sqlite3_preupdate_old);
	}
	if (operation != SQLITE_DELETE) {
		sum->rows++;
		sum->sum += digest_row(sums, handle, sqlite3_preupdate_new);
	}
	sums->is_dirty = true;
	db_rows_note(sums->rows, table, operation != SQLITE_INSERT, operation != SQLITE_DELETE);
}

static bool is_counted(const char *table)
{
	return strncmp(table, "sqlite_", 7) != 0 && strcmp(table, "sums") != 0;
}

static uint64_t digest_row(struct db_sums *sums, sqlite3 *handle, take_value *take)
{
	int columns = sqlite3_preupdate_count(handle);
	for (int i = 0; i < columns; i++) {
		sqlite3_value *value = NULL;
		if (take(handle, i, &value) == SQLITE_OK)
			add_value(&sums->digest, value);
		else
			note_unread(sums);
	}
	return row_digest_end(&sums->digest);
}

static void add_value(struct row_digest *digest, sqlite3_value *value)
{
	switch (sqlite3_value_type(value)) {
	case SQLITE_NULL:
		row_digest_add_null(digest);
		break;
	case SQLITE_INTEGER:
		row_digest_add_number(digest, sqlite3_value_int64(value));
		break;
	default: {
		const void *bytes = sqlite3_value_blob(value);
		row_digest_add_bytes(digest, span_of(bytes, (size_t)sqlite3_value_bytes(value)));
	}
	}
}

/* A row may extend over pages that were not read yet, and one of them may be damaged. */
static void note_unread(struct db_sums *sums)
{
	struct error why;
	db_fail(sums->db, "reading a row that changes", &why);
	db_sums_doubt(sums, &why);
}

static int store(struct db_sums *sums, const char *sql, struct error *err)
{
	struct buffer bytes;
	buffer_init(&bytes, TABLE_SUMS_MAX_BYTES);
	table_sums_encode(&sums->now, &bytes);
	int result =
		db_run(sums->db, sql, err, db_i64(sums->change + 1), db_blob(buffer_span(&bytes)));
	buffer_release(&bytes);
	return result;
}

/* Copies only the sums, not the names: a savepoint keeps the tables that it knew, and later ones
 * come back empty. */
static void copy_tables(struct table_sum *to, const struct table_sum *from)
{
	memcpy(to, from, TABLE_SUMS_MAX * sizeof(*to));
}

static int count_rows(sqlite3_stmt *rows, struct table_sum *out)
{
	struct row_digest digest;
	int got;
	row_digest_init(&digest);
	*out = (struct table_sum){0};
	while ((got = sqlite3_step(rows)) == SQLITE_ROW) {
		out->rows++;
		out->sum += digest_result(&digest, rows);
	}
	row_digest_release(&digest);
	return got;
}

static uint64_t digest_result(struct row_digest *digest, sqlite3_stmt *row)
{
	int columns = sqlite3_column_count(row);
	for (int i = 0; i < columns; i++)
		add_value(digest, sqlite3_column_value(row, i));
	return row_digest_end(digest);
}

static int make_row(struct db *db, struct error *err)
{
	if (db_begin_alone(db, err) != 0)
		return -1;
	if (establish(db->sums, err) != 0 || db_commit_alone(db, err) != 0) {
		db_rollback(db);
		return -1;
	}
	db->sums->change++;
	return 0;
}

static int establish(struct db_sums *sums, struct error *err)
{
	struct table_sums *now = &sums->now;
	if (db_sums_list(sums->db, now, err) != 0)
		return -1;
	for (size_t i = 0; i < now->count; i++)
		if (db_sums_count(sums->db, now->names[i], &now->tables[i], err) != 0)
			return -1;
	return store(sums, SQL_FIRST, err);
}
