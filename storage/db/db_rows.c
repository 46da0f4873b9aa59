/* A row is removed by its primary key, so the columns of each table's key are read once, before the
 * first change: the hook that reports a row may not ask the database anything. */
#include "storage/db/db_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/db/db_internal.h"

enum { KEY_COLUMNS_MAX = 8, SQL_BYTES = 4096, KEPT_BYTES = 1024 * 1024 };
static const size_t CHANGED_MAX_BYTES = (size_t)1 << 30;

struct table_shape {
	char name[TABLE_NAME_BYTES];
	size_t columns;
	size_t key_count;
	int key[KEY_COLUMNS_MAX]; /* places of the columns of the primary key, in its order */
	char column_names[ROW_VALUES_MAX][TABLE_NAME_BYTES];
};
struct table_shapes {
	size_t count;
	struct table_shape tables[TABLE_SUMS_MAX];
};

struct db_rows {
	struct db *db;
	struct table_shapes shapes;
	struct buffer bytes;
	size_t savepoint; /* bytes at these, to return to */
	size_t statement;
};

struct db_rows_writer {
	struct db *db;
	struct table_shapes shapes;
	sqlite3_stmt *put[TABLE_SUMS_MAX];
	sqlite3_stmt *remove[TABLE_SUMS_MAX];
};

static int read_shapes(struct db *db, struct table_shapes *out, struct error *err);
static int read_shape(struct db *db, const char *table, struct table_shape *out, struct error *err);
static void add_column(struct table_shape *shape, sqlite3_stmt *row);
static size_t find_shape(const struct table_shapes *shapes, const char *table);
static int scan_table(
	struct db *db, const char *table, db_rows_take_fn *take, void *owner, struct error *err);
static int scan_numbers(struct db *db, db_rows_take_fn *take, void *owner, struct error *err);
static struct row_value value_of(sqlite3_value *value);
static void note_removal(struct db_rows *rows, const struct table_shape *shape);
static bool keeps_key(const struct db_rows *rows, const struct table_shape *shape);
static void note_put(struct db_rows *rows, const struct table_shape *shape);
static int empty_tables(struct db_rows_writer *writer, struct error *err);
static int write_row(struct db_rows_writer *writer, const struct row *row, struct error *err);
static int write_next(struct db_rows_writer *writer, const struct row *row, struct error *err);
static sqlite3_stmt **find_statement(
	struct db_rows_writer *writer, const struct row *row, size_t place);
static int prepare(struct db_rows_writer *writer, const struct table_shape *shape, bool puts,
	sqlite3_stmt **out, struct error *err);
static void print_put(const struct table_shape *shape, struct buffer *out);
static void print_names(const struct table_shape *shape, bool key_alone, struct buffer *out);
static void print_remove(const struct table_shape *shape, struct buffer *out);
static bool is_key(const struct table_shape *shape, size_t column);
static int run_row(struct db_rows_writer *writer, sqlite3_stmt *handle, const struct row *row,
	struct error *err);
static int bind(sqlite3_stmt *handle, int place, const struct row_value *value);

int db_rows_scan(struct db *db, db_rows_take_fn *take, void *owner, struct error *err)
{
	struct table_sums *tables = memory_new(sizeof(*tables));
	int result = db_sums_list(db, tables, err);
	for (size_t i = 0; result == 0 && i < tables->count; i++)
		if (strcmp(tables->names[i], "sqlite_schema") != 0)
			result = scan_table(db, tables->names[i], take, owner, err);
	free(tables);
	return result == 0 ? scan_numbers(db, take, owner, err) : -1;
}

struct db_rows *db_rows_new(struct db *db, struct error *err)
{
	struct db_rows *rows = memory_new(sizeof(*rows));
	rows->db = db;
	buffer_init(&rows->bytes, CHANGED_MAX_BYTES);
	if (read_shapes(db, &rows->shapes, err) == 0)
		return rows;
	db_rows_free(rows);
	return NULL;
}

void db_rows_free(struct db_rows *rows)
{
	if (rows == NULL)
		return;
	buffer_release(&rows->bytes);
	free(rows);
}

void db_rows_begin(struct db_rows *rows)
{
	if (rows == NULL)
		return;
	if (rows->bytes.capacity > KEPT_BYTES) {
		buffer_release(&rows->bytes);
		buffer_init(&rows->bytes, CHANGED_MAX_BYTES);
	}
	buffer_reset(&rows->bytes);
}

void db_rows_savepoint(struct db_rows *rows)
{
	if (rows != NULL)
		rows->savepoint = rows->bytes.len;
}

/* What had no room stays failed: some of it may lie before the savepoint. */
void db_rows_savepoint_rollback(struct db_rows *rows)
{
	if (rows != NULL)
		rows->bytes.len = rows->savepoint;
}

void db_rows_statement(struct db_rows *rows)
{
	if (rows != NULL)
		rows->statement = rows->bytes.len;
}

void db_rows_statement_rollback(struct db_rows *rows)
{
	if (rows != NULL)
		rows->bytes.len = rows->statement;
}

void db_rows_note(struct db_rows *rows, const char *table, bool had_row, bool has_row)
{
	if (rows == NULL)
		return;
	const size_t place = find_shape(&rows->shapes, table);
	ASSERT(place < rows->shapes.count); /* tables are made by migrations alone */
	const struct table_shape *shape = &rows->shapes.tables[place];
	if (had_row && !(has_row && keeps_key(rows, shape)))
		note_removal(rows, shape);
	if (has_row)
		note_put(rows, shape);
}

int db_rows_changed(const struct db_rows *rows, struct span *out, struct error *err)
{
	*out = buffer_span(&rows->bytes);
	return buffer_check(&rows->bytes, "what one transaction changes", err);
}

struct db_rows_writer *db_rows_writer_new(struct db *db, struct error *err)
{
	struct db_rows_writer *writer = memory_new(sizeof(*writer));
	writer->db = db;
	if (read_shapes(db, &writer->shapes, err) == 0 &&
		db_run_script(db, "PRAGMA foreign_keys=OFF; PRAGMA synchronous=OFF", err) == 0 &&
		empty_tables(writer, err) == 0)
		return writer;
	db_rows_writer_free(writer);
	return NULL;
}

void db_rows_writer_free(struct db_rows_writer *writer)
{
	if (writer == NULL)
		return;
	for (size_t i = 0; i < TABLE_SUMS_MAX; i++) {
		sqlite3_finalize(writer->put[i]);
		sqlite3_finalize(writer->remove[i]);
	}
	free(writer);
}

int db_rows_write(struct db_rows_writer *writer, struct span rows, struct error *err)
{
	struct row *row = memory_new(sizeof(*row));
	int got;
	while ((got = row_bytes_take(&rows, row, err)) == 1)
		if (write_row(writer, row, err) != 0) {
			got = -1;
			break;
		}
	free(row);
	return got;
}

static int read_shapes(struct db *db, struct table_shapes *out, struct error *err)
{
	struct table_sums *tables = memory_new(sizeof(*tables));
	int result = db_sums_list(db, tables, err);
	out->count = 0;
	for (size_t i = 0; result == 0 && i < tables->count; i++)
		if (strcmp(tables->names[i], "sqlite_schema") != 0)
			result = read_shape(db, tables->names[i], &out->tables[out->count++], err);
	free(tables);
	return result;
}

static int read_shape(struct db *db, const char *table, struct table_shape *out, struct error *err)
{
	static const char sql[] = "SELECT name, pk FROM pragma_table_info(?1) ORDER BY cid";
	sqlite3_stmt *rows = NULL;
	int got = sqlite3_prepare_v2(db->handle, sql, -1, &rows, NULL);
	snprintf(out->name, sizeof(out->name), "%s", table);
	if (got == SQLITE_OK)
		got = sqlite3_bind_text(rows, 1, table, -1, SQLITE_STATIC);
	while (got == SQLITE_OK || got == SQLITE_ROW) {
		got = sqlite3_step(rows);
		if (got == SQLITE_ROW)
			add_column(out, rows);
	}
	int result = got == SQLITE_DONE ? 0 : db_fail(db, table, err);
	sqlite3_finalize(rows);
	ASSERT(result != 0 || out->key_count > 0); /* each table has a primary key */
	return result;
}

static void add_column(struct table_shape *shape, sqlite3_stmt *row)
{
	const int in_key = sqlite3_column_int(row, 1); /* its place there, from 1; 0: not in it */
	ASSERT(shape->columns < ROW_VALUES_MAX && in_key <= KEY_COLUMNS_MAX);
	if (in_key > 0) {
		shape->key[in_key - 1] = (int)shape->columns;
		shape->key_count++;
	}
	snprintf(shape->column_names[shape->columns++], TABLE_NAME_BYTES, "%s",
		(const char *)sqlite3_column_text(row, 0));
}

static size_t find_shape(const struct table_shapes *shapes, const char *table)
{
	size_t place = 0;
	while (place < shapes->count && strcmp(shapes->tables[place].name, table) != 0)
		place++;
	return place;
}

static int scan_table(
	struct db *db, const char *table, db_rows_take_fn *take, void *owner, struct error *err)
{
	char sql[TABLE_NAME_BYTES + 40];
	sqlite3_stmt *rows = NULL;
	struct buffer row;
	int result = 0;
	buffer_init(&row, CHANGED_MAX_BYTES);
	snprintf(sql, sizeof(sql), "SELECT * FROM \"%s\" NOT INDEXED", table);
	int got = sqlite3_prepare_v2(db->handle, sql, -1, &rows, NULL);
	while (result == 0 && (got == SQLITE_OK || got == SQLITE_ROW) &&
		(got = sqlite3_step(rows)) == SQLITE_ROW) {
		const int columns = sqlite3_column_count(rows);
		buffer_reset(&row);
		row_bytes_begin(&row, ROW_PUT, table, (size_t)columns);
		for (int i = 0; i < columns; i++) {
			const struct row_value value = value_of(sqlite3_column_value(rows, i));
			row_bytes_add(&row, &value);
		}
		result = buffer_check(&row, table, err);
		if (result == 0)
			result = take(owner, buffer_span(&row), err);
	}
	if (result == 0 && got != SQLITE_DONE)
		result = db_fail(db, table, err);
	sqlite3_finalize(rows);
	buffer_release(&row);
	return result;
}

static int scan_numbers(struct db *db, db_rows_take_fn *take, void *owner, struct error *err)
{
	static const char sql[] = "SELECT name, seq FROM sqlite_sequence";
	struct db_statement *numbers = db_query(db, sql, err);
	struct buffer row;
	int got;
	buffer_init(&row, CHANGED_MAX_BYTES);
	while ((got = db_step(numbers, err)) == 1) {
		char table[TABLE_NAME_BYTES];
		const struct span name = db_column_blob(numbers, 0);
		const struct row_value next = {
			.kind = ROW_NUMBER, .number = db_column_i64(numbers, 1)};
		snprintf(table, sizeof(table), "%.*s", (int)name.len, name.data);
		buffer_reset(&row);
		row_bytes_begin(&row, ROW_NEXT, table, 1);
		row_bytes_add(&row, &next);
		if (take(owner, buffer_span(&row), err) != 0) {
			got = -1;
			break;
		}
	}
	db_reset(numbers);
	buffer_release(&row);
	return got;
}

/* A value that cannot be read, NULL, is noted as an SQL NULL; the sums then fail the
 * transaction. */
static struct row_value value_of(sqlite3_value *value)
{
	const int type = value == NULL ? SQLITE_NULL : sqlite3_value_type(value);
	struct row_value result = {.kind = ROW_NULL};
	if (type == SQLITE_INTEGER) {
		result.kind = ROW_NUMBER;
		result.number = sqlite3_value_int64(value);
	} else if (type != SQLITE_NULL) {
		const void *bytes = sqlite3_value_blob(value);
		result.kind =
			type == SQLITE_BLOB ? ROW_BYTES : ROW_TEXT; /* no table has a fraction */
		result.bytes = span_of(bytes, (size_t)sqlite3_value_bytes(value));
	}
	return result;
}

static void note_removal(struct db_rows *rows, const struct table_shape *shape)
{
	row_bytes_begin(&rows->bytes, ROW_REMOVE, shape->name, shape->key_count);
	for (size_t i = 0; i < shape->key_count; i++) {
		sqlite3_value *old = NULL;
		sqlite3_preupdate_old(rows->db->handle, shape->key[i], &old);
		const struct row_value value = value_of(old);
		row_bytes_add(&rows->bytes, &value);
	}
}

static bool keeps_key(const struct db_rows *rows, const struct table_shape *shape)
{
	for (size_t i = 0; i < shape->key_count; i++) {
		sqlite3_value *values[2] = {NULL, NULL};
		sqlite3_preupdate_old(rows->db->handle, shape->key[i], &values[0]);
		sqlite3_preupdate_new(rows->db->handle, shape->key[i], &values[1]);
		const struct row_value old = value_of(values[0]);
		const struct row_value now = value_of(values[1]);
		if (old.kind != now.kind || old.number != now.number ||
			!span_equal(old.bytes, now.bytes))
			return false;
	}
	return true;
}

static void note_put(struct db_rows *rows, const struct table_shape *shape)
{
	row_bytes_begin(&rows->bytes, ROW_PUT, shape->name, shape->columns);
	for (size_t i = 0; i < shape->columns; i++) {
		sqlite3_value *now = NULL;
		sqlite3_preupdate_new(rows->db->handle, (int)i, &now);
		const struct row_value value = value_of(now);
		row_bytes_add(&rows->bytes, &value);
	}
}

static int empty_tables(struct db_rows_writer *writer, struct error *err)
{
	char sql[TABLE_NAME_BYTES + 20];
	for (size_t i = 0; i < writer->shapes.count; i++) {
		snprintf(sql, sizeof(sql), "DELETE FROM \"%s\"", writer->shapes.tables[i].name);
		if (db_run_script(writer->db, sql, err) != 0)
			return -1;
	}
	return db_run_script(writer->db, "DELETE FROM sums; DELETE FROM sqlite_sequence", err);
}

static int write_row(struct db_rows_writer *writer, const struct row *row, struct error *err)
{
	if (row->operation == ROW_NEXT)
		return write_next(writer, row, err);
	const size_t place = find_shape(&writer->shapes, row->table);
	if (place == writer->shapes.count)
		return error_set(err, ERROR_CORRUPT,
			"The journal names a table '%s' that is not there.", row->table);
	const struct table_shape *shape = &writer->shapes.tables[place];
	const bool puts = row->operation == ROW_PUT;
	if (row->count != (puts ? shape->columns : shape->key_count))
		return error_set(err, ERROR_CORRUPT,
			"The journal has a row of %zu values of the table '%s'.", row->count,
			row->table);
	sqlite3_stmt **statement = find_statement(writer, row, place);
	if (*statement == NULL && prepare(writer, shape, puts, statement, err) != 0)
		return -1;
	return run_row(writer, *statement, row, err);
}

static int write_next(struct db_rows_writer *writer, const struct row *row, struct error *err)
{
	static const char drop[] = "DELETE FROM sqlite_sequence WHERE name = CAST(?1 AS TEXT)";
	static const char add[] =
		"INSERT INTO sqlite_sequence (name, seq) VALUES (CAST(?1 AS TEXT), ?2)";
	const struct span name = span_text(row->table);
	if (db_run(writer->db, drop, err, db_blob(name)) != 0)
		return -1;
	return db_run(writer->db, add, err, db_blob(name), db_i64(row->values[0].number));
}

static sqlite3_stmt **find_statement(
	struct db_rows_writer *writer, const struct row *row, size_t place)
{
	return row->operation == ROW_PUT ? &writer->put[place] : &writer->remove[place];
}

static int prepare(struct db_rows_writer *writer, const struct table_shape *shape, bool puts,
	sqlite3_stmt **out, struct error *err)
{
	struct buffer sql;
	buffer_init(&sql, SQL_BYTES);
	(puts ? print_put : print_remove)(shape, &sql);
	int result = buffer_check(&sql, shape->name, err);
	if (result == 0 &&
		sqlite3_prepare_v3(writer->db->handle, buffer_text(&sql), -1,
			SQLITE_PREPARE_PERSISTENT, out, NULL) != SQLITE_OK)
		result = db_fail(writer->db, buffer_text(&sql), err);
	buffer_release(&sql);
	return result;
}

/* A row that is there is changed in place: REPLACE would drop it, and rows that break no rule of
 * its key but another one's. */
static void print_put(const struct table_shape *shape, struct buffer *out)
{
	buffer_format(out, "INSERT INTO \"%s\" (", shape->name);
	print_names(shape, false, out);
	buffer_add_text(out, ") VALUES (");
	for (size_t i = 0; i < shape->columns; i++)
		buffer_format(out, "%s?%zu", i == 0 ? "" : ", ", i + 1);
	buffer_add_text(out, ") ON CONFLICT (");
	print_names(shape, true, out);
	buffer_add_text(
		out, shape->columns == shape->key_count ? ") DO NOTHING" : ") DO UPDATE SET ");
	const char *comma = "";
	for (size_t i = 0; i < shape->columns; i++) {
		if (is_key(shape, i))
			continue;
		buffer_format(out, "%s\"%s\" = ?%zu", comma, shape->column_names[i], i + 1);
		comma = ", ";
	}
}

static void print_names(const struct table_shape *shape, bool key_alone, struct buffer *out)
{
	const size_t count = key_alone ? shape->key_count : shape->columns;
	for (size_t i = 0; i < count; i++)
		buffer_format(out, "%s\"%s\"", i == 0 ? "" : ", ",
			shape->column_names[key_alone ? (size_t)shape->key[i] : i]);
}

static void print_remove(const struct table_shape *shape, struct buffer *out)
{
	buffer_format(out, "DELETE FROM \"%s\" WHERE ", shape->name);
	for (size_t i = 0; i < shape->key_count; i++)
		buffer_format(out, "%s\"%s\" = ?%zu", i == 0 ? "" : " AND ",
			shape->column_names[shape->key[i]], i + 1);
}

static bool is_key(const struct table_shape *shape, size_t column)
{
	for (size_t i = 0; i < shape->key_count; i++)
		if ((size_t)shape->key[i] == column)
			return true;
	return false;
}

static int run_row(struct db_rows_writer *writer, sqlite3_stmt *handle, const struct row *row,
	struct error *err)
{
	int got = SQLITE_OK;
	for (size_t i = 0; got == SQLITE_OK && i < row->count; i++)
		got = bind(handle, (int)i + 1, &row->values[i]);
	if (got == SQLITE_OK)
		got = sqlite3_step(handle);
	sqlite3_reset(handle);
	return got == SQLITE_DONE ? 0 : db_fail(writer->db, row->table, err);
}

static int bind(sqlite3_stmt *handle, int place, const struct row_value *value)
{
	const void *bytes = value->bytes.len == 0 ? (const void *)"" : value->bytes.data;
	if (value->kind == ROW_NULL)
		return sqlite3_bind_null(handle, place);
	if (value->kind == ROW_NUMBER)
		return sqlite3_bind_int64(handle, place, value->number);
	if (value->kind == ROW_TEXT)
		return sqlite3_bind_text64(
			handle, place, bytes, value->bytes.len, SQLITE_STATIC, SQLITE_UTF8);
	return sqlite3_bind_blob64(handle, place, bytes, value->bytes.len, SQLITE_STATIC);
}
