/* SQL, whatever engine speaks it: connections, prepared statements, results. The one home of
 * sqlite3.h: nothing outside knows an engine's error codes. One thread at a time uses a connection
 * and its statements. */
#ifndef STORAGE_DB_DB_H
#define STORAGE_DB_DB_H

#include "base/arena.h"
#include "base/error.h"
#include "base/span.h"

struct db;
struct db_statement;

/* DB_LOOK is DB_READ for a process beside the one that has the database: a page that is mended in
 * reading stays as it is in the file. */
enum db_mode { DB_READ, DB_WRITE, DB_LOOK };

/* Opens (DB_WRITE also creates) the database and sets up the connection: WAL, synchronous=FULL,
 * foreign_keys, no automatic checkpoint, busy timeout. */
struct db *db_open(const char *path, enum db_mode mode, struct error *err);
void db_close(struct db *db);
const char *db_path(const struct db *db);
/* Objects that must learn what a connection changes. They travel with the connection; borrowed,
 * NULL until set. */
enum db_context {
	DB_CONTEXT_PACK_TOUCHES,
	DB_CONTEXT_CHANGE_FEED,
	DB_CONTEXT_RUN_FEED,
	DB_CONTEXT_COUNT
};
void db_set_context(struct db *db, enum db_context which, void *context);
void *db_context(const struct db *db, enum db_context which);

/* For scripts (migrations) only; never for strings that are built at run time. */
int db_run_script(struct db *db, const char *sql, struct error *err);
/* PRAGMA user_version and application_id. */
int db_get_version(struct db *db, int *out_version, int *out_application, struct error *err);
int db_set_version(struct db *db, int version, int application, struct error *err);

/* Takes the write lock at once, and remembers the caller for messages about a transaction that
 * nobody ended. */
#define db_begin(db, err) db_begin_at((db), __FILE__, __LINE__, (err))
int db_begin_at(struct db *db, const char *file, int line, struct error *err);
int db_commit(struct db *db, struct error *err); /* on failure everything is rolled back */
/* After db_commit failed: whether the log may hold the whole transaction, because COMMIT itself
 * broke off. */
bool db_is_in_doubt(const struct db *db);
void db_rollback(struct db *db); /* does nothing when no transaction is open */
/* False also after the engine gave up the transaction by itself (disk full, I/O error). Until
 * db_rollback every change then fails with the same reason. */
bool db_in_transaction(const struct db *db);
/* One level of nesting inside a transaction. */
int db_savepoint(struct db *db, struct error *err);
int db_savepoint_release(struct db *db, struct error *err);
void db_savepoint_rollback(struct db *db);
/* Rows written and removed since db_begin, or since db_savepoint inside it. */
int64_t db_rows_touched(const struct db *db);
/* A read transaction: all statements until db_snapshot_end see one state. */
int db_snapshot_begin(struct db *db, struct error *err);
void db_snapshot_end(struct db *db);

/* The value of ?1, ?2, ... in a statement, made by the functions below. */
enum db_value_kind { DB_VALUE_END, DB_VALUE_NULL, DB_VALUE_NUMBER, DB_VALUE_BYTES };
struct db_value {
	enum db_value_kind kind;
	int64_t number;
	struct span bytes; /* borrowed until the statement ends or is reset */
};

static inline struct db_value db_i64(int64_t number)
{
	return (struct db_value){.kind = DB_VALUE_NUMBER, .number = number};
}

/* An empty span is an empty value, not NULL. */
static inline struct db_value db_blob(struct span bytes)
{
	return (struct db_value){.kind = DB_VALUE_BYTES, .bytes = bytes};
}

static inline struct db_value db_null(void)
{
	return (struct db_value){.kind = DB_VALUE_NULL};
}

static inline struct db_value db_i64_or_null(bool has_number, int64_t number)
{
	return has_number ? db_i64(number) : db_null();
}

static inline struct db_value db_blob_or_null(bool has_bytes, struct span bytes)
{
	return has_bytes ? db_blob(bytes) : db_null();
}

/* The values in the order of their numbers, as the calls below take them. */
#define DB_VALUES(...) ((const struct db_value[]){__VA_ARGS__ __VA_OPT__(, ){.kind = DB_VALUE_END}})

/* Each `sql` below is a static string: a statement is prepared once per connection and found again
 * by the address of its text. The values follow `err`:
 *     db_run(db, SQL_STEP_REMOVE, err, db_i64(id)) */

/* Runs a statement that gives no rows. exists when it broke a uniqueness rule. */
#define db_run(db, sql, err, ...) db_run_values((db), (sql), DB_VALUES(__VA_ARGS__), (err))
int db_run_values(struct db *db, const char *sql, const struct db_value *values, struct error *err);
/* Inserts one row, as db_run does, and gives the number that the engine assigned to it. */
#define db_insert(db, sql, out_id, err, ...) \
	db_insert_values((db), (sql), DB_VALUES(__VA_ARGS__), (out_id), (err))
int db_insert_values(struct db *db, const char *sql, const struct db_value *values, int64_t *out_id,
	struct error *err);
/* Reads the first column of the first row. Returns 1 when there is a row, 0 when there is none (the
 * output stays as it was), -1 on error. */
#define db_find_i64(db, sql, out, err, ...) \
	db_find_i64_values((db), (sql), DB_VALUES(__VA_ARGS__), (out), (err))
int db_find_i64_values(struct db *db, const char *sql, const struct db_value *values, int64_t *out,
	struct error *err);
/* Returns 1 when there is a row, 0 when there is none, -1 on error. */
#define db_exists(db, sql, err, ...) db_exists_values((db), (sql), DB_VALUES(__VA_ARGS__), (err))
int db_exists_values(
	struct db *db, const char *sql, const struct db_value *values, struct error *err);
/* Reads the first column of the first row as bytes, copied into the arena. arena_overflowed tells
 * when they had no room. */
#define db_find_blob(db, sql, arena, out, err, ...) \
	db_find_blob_values((db), (sql), DB_VALUES(__VA_ARGS__), (arena), (out), (err))
int db_find_blob_values(struct db *db, const char *sql, const struct db_value *values,
	struct arena *arena, struct span *out, struct error *err);
/* A statement that gives rows, positioned before the first one. db_step moves from row to row;
 * db_reset ends it early. NULL with the error set on failure, which db_step passes on. */
#define db_query(db, sql, err, ...) db_query_values((db), (sql), DB_VALUES(__VA_ARGS__), (err))
struct db_statement *db_query_values(
	struct db *db, const char *sql, const struct db_value *values, struct error *err);
/* Returns 1 when a row is there, 0 at the end, -1 on error, also for NULL, whose error is already
 * set. */
int db_step(struct db_statement *statement, struct error *err);
/* NULL is fine. */
void db_reset(struct db_statement *statement);
int64_t db_column_i64(struct db_statement *statement, int column);
/* valid until the next step or reset */
struct span db_column_blob(struct db_statement *statement, int column);
bool db_column_is_null(struct db_statement *statement, int column);
/* From here on the connection keeps counts and sums of all tables in the table `sums`
 * (docs/FORMAT.md, "Counts and sums"). If that table has no row, everything is counted once. A
 * migration that changes tables removes the row first. */
int db_keep_sums(struct db *db, struct error *err);
/* The number of the last committed change that this connection has seen, its own or an earlier one.
 * Each COMMIT that changes rows has the next number. */
int64_t db_change(const struct db *db);
/* A journal of the changes of a connection that keeps sums. */
struct db_record {
	int64_t change;   /* its number */
	uint64_t sums;    /* table_sums_total (table_sums.h) after it */
	struct span rows; /* what it changes (row_bytes.h); borrowed */
};
enum db_outcome { DB_COMMITTED, DB_ROLLED_BACK, DB_IN_DOUBT };
struct db_recorder {
	void *owner; /* borrowed until the connection is closed */
	/* Right before the COMMIT of a transaction that changed rows. */
	void (*take)(void *owner, const struct db_record *record);
	/* Once after each take. */
	void (*settle)(void *owner, enum db_outcome outcome);
	/* Rows may have changed without a record. */
	void (*lose)(void *owner);
};
/* After the migrations, on a connection that keeps sums. */
int db_set_recorder(struct db *db, const struct db_recorder *recorder, struct error *err);
/* How often any connection of the process found a page of the file or its log damaged or
 * unreadable, and how often it mended a page that was one flipped bit off, both since the first
 * connection was opened. */
uint64_t db_damage(const struct db *db);
uint64_t db_mended(const struct db *db);
/* Looks at the file itself, past the pages that connections keep in memory. damaged when the system
 * cannot read it, and when it is not a database any more, such as one that was emptied.
 * *out_has_name: its path still leads to it; else it was deleted, or replaced. */
int db_probe(struct db *db, bool *out_has_name, struct error *err);
/* Whether the pages of the file have checksums. db_vacuum_whole adds them to a file without. */
bool db_is_summed(const struct db *db);
/* From here on this connection reads pages of the file as they are, damaged or not: for a reader
 * that can tell by itself what is right. */
void db_overlook(struct db *db);
int64_t db_changes(struct db *db);

/* Upkeep of the log (WAL). A checkpoint that readers or a writer hold up does what it can and
 * returns 0. */
int db_checkpoint_passive(struct db *db, struct error *err);
int db_checkpoint_restart(struct db *db, struct error *err);
/* bytes in use in the log after this connection's last commit */
uint64_t db_wal_bytes(const struct db *db);
/* Whether the log stays as it is when the last connection closes. Otherwise it is then moved into
 * the file. */
void db_keep_log(struct db *db, bool keeps);
/* A name of the log that this connection's last commit was written to, which changes when the log
 * begins again, and the number of frames it then had. 0 before the first commit. */
uint64_t db_log_salt(const struct db *db);
uint32_t db_log_frames(const struct db *db);
/* A number that changes when another connection commits. */
int db_data_version(struct db *db, int64_t *out_version, struct error *err);
/* Moves the whole log into the file and truncates it. Waits a moment for readers and the writer; if
 * they hold it up, it leaves the work for another time and returns 0. */
int db_checkpoint_truncate(struct db *db, struct error *err);
int db_free_pages(struct db *db, int64_t *out_pages, struct error *err);
/* Writes the whole file again, which closes the gaps that deletes left. Takes as long as reading
 * and writing everything; commits of others wait. */
int db_vacuum_whole(struct db *db, struct error *err);
int db_pages(struct db *db, int64_t *out_pages, struct error *err);
/* Gives up to `pages` free pages back to the file system, inside a transaction or outside. */
int db_vacuum_some(struct db *db, unsigned pages, struct error *err);

#endif
