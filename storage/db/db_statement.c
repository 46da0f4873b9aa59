/* Statements: prepared once for each connection, bound, stepped. A connection keeps them in a small
 * table keyed by the address of their SQL text, so that looking one up is a multiplication and a
 * comparison, and the connection alone owns them. Bound bytes are not copied (SQLITE_STATIC). */
#include "base/memory.h"
#include "storage/db/db_internal.h"

static struct db_statement *prepare(struct db *db, const char *sql, struct error *err);
static size_t slot_of(const struct db *db, const char *sql);
static int bind_value(sqlite3_stmt *handle, int position, const struct db_value *value);
static int step_writing(struct db_statement *statement, struct error *err);
static int step_reading(struct db_statement *statement, struct error *err);

struct db_statement *db_query_values(
	struct db *db, const char *sql, const struct db_value *values, struct error *err)
{
	struct db_statement *const statement = prepare(db, sql, err);
	if (statement == NULL)
		return NULL;
	for (int at = 0; values[at].kind != DB_VALUE_END; at++) {
		const int result = bind_value(statement->handle, at + 1, &values[at]);
		ASSERT(result != SQLITE_RANGE && result != SQLITE_MISUSE);
		if (result != SQLITE_OK) {
			error_set(err, db_error_kind(result),
				"%s: value %d cannot be bound to '%s'.", db->path, at + 1, sql);
			return NULL;
		}
	}
	return statement;
}

int db_step(struct db_statement *statement, struct error *err)
{
	if (statement == NULL)
		return -1;
	int got =
		statement->is_writing ? step_writing(statement, err) : step_reading(statement, err);
	if (got < 0)
		sqlite3_reset(statement->handle);
	return got;
}

int db_run_values(struct db *db, const char *sql, const struct db_value *values, struct error *err)
{
	struct db_statement *const statement = db_query_values(db, sql, values, err);
	const int result = db_step(statement, err);
	ASSERT(result != 1);
	db_reset(statement);
	return result;
}

int db_insert_values(struct db *db, const char *sql, const struct db_value *values, int64_t *out_id,
	struct error *err)
{
	if (db_run_values(db, sql, values, err) != 0)
		return -1;
	*out_id = sqlite3_last_insert_rowid(db->handle);
	return 0;
}

int db_find_i64_values(struct db *db, const char *sql, const struct db_value *values, int64_t *out,
	struct error *err)
{
	struct db_statement *const statement = db_query_values(db, sql, values, err);
	const int got = db_step(statement, err);
	if (got == 1)
		*out = db_column_i64(statement, 0);
	db_reset(statement);
	return got;
}

int db_exists_values(
	struct db *db, const char *sql, const struct db_value *values, struct error *err)
{
	struct db_statement *const statement = db_query_values(db, sql, values, err);
	const int got = db_step(statement, err);
	db_reset(statement);
	return got;
}

int db_find_blob_values(struct db *db, const char *sql, const struct db_value *values,
	struct arena *arena, struct span *out, struct error *err)
{
	struct db_statement *const statement = db_query_values(db, sql, values, err);
	const int got = db_step(statement, err);
	if (got == 1)
		*out = arena_copy(arena, db_column_blob(statement, 0));
	db_reset(statement);
	return got;
}

void db_reset(struct db_statement *statement)
{
	if (statement != NULL)
		sqlite3_reset(statement->handle);
}

int64_t db_column_i64(struct db_statement *statement, int column)
{
	return sqlite3_column_int64(statement->handle, column);
}

struct span db_column_blob(struct db_statement *statement, int column)
{
	const void *const bytes = sqlite3_column_blob(statement->handle, column);
	const int len = sqlite3_column_bytes(statement->handle, column);
	return span_of(bytes, (size_t)len);
}

bool db_column_is_null(struct db_statement *statement, int column)
{
	return sqlite3_column_type(statement->handle, column) == SQLITE_NULL;
}

int64_t db_changes(struct db *db)
{
	return sqlite3_changes64(db->handle);
}

static struct db_statement *prepare(struct db *db, const char *sql, struct error *err)
{
	const size_t slot = slot_of(db, sql);
	struct db_statement *statement = db->slots[slot];
	if (statement != NULL) {
		ASSERT(!sqlite3_stmt_busy(statement->handle));
		sqlite3_reset(statement->handle);
		sqlite3_clear_bindings(statement->handle);
		return statement;
	}
	sqlite3_stmt *handle = NULL;
	if (sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &handle, NULL) !=
		SQLITE_OK) {
		db_fail(db, sql, err);
		return NULL;
	}
	db->statements++;
	ASSERT(db->statements < DB_STATEMENT_SLOTS);
	statement = memory_new(sizeof(*statement));
	*statement = (struct db_statement){.db = db,
		.handle = handle,
		.sql = sql,
		.is_writing = sqlite3_stmt_readonly(handle) == 0};
	db->slots[slot] = statement;
	return statement;
}

static size_t slot_of(const struct db *db, const char *sql)
{
	size_t slot = (size_t)(((uintptr_t)sql * UINT64_C(0x9E3779B97F4A7C15)) >> 40) %
		DB_STATEMENT_SLOTS;
	while (db->slots[slot] != NULL && db->slots[slot]->sql != sql)
		slot = (slot + 1) % DB_STATEMENT_SLOTS;
	return slot;
}

/* An empty span is an empty value, so its pointer must not be NULL: that would bind NULL. */
static int bind_value(sqlite3_stmt *handle, int position, const struct db_value *value)
{
	const void *const bytes = value->bytes.len == 0 ? (const void *)"" : value->bytes.data;
	switch (value->kind) {
	case DB_VALUE_NUMBER:
		return sqlite3_bind_int64(handle, position, value->number);
	case DB_VALUE_BYTES:
		return sqlite3_bind_blob64(
			handle, position, bytes, value->bytes.len, SQLITE_STATIC);
	default:
		return sqlite3_bind_null(handle, position);
	}
}

static int step_writing(struct db_statement *statement, struct error *err)
{
	struct db *db = statement->db;
	if (db_refuse_lost(db, err) != 0)
		return -1;
	db_sums_statement(db->sums);
	int got = step_reading(statement, err);
	if (got < 0) {
		db_sums_statement_rollback(db->sums);
		db_note_broken(db, err);
	}
	return got == 0 && db->is_begun ? db_sums_check(db->sums, err) : got;
}

static int step_reading(struct db_statement *statement, struct error *err)
{
	int result = sqlite3_step(statement->handle);
	if (result == SQLITE_ROW || result == SQLITE_DONE)
		return result == SQLITE_ROW;
	return db_fail(statement->db, statement->sql, err);
}
