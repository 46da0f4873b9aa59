/* SQL, whatever engine speaks it: connections, prepared statements, results. The one home of
 * sqlite3.h. Nothing outside knows an engine's error codes. A connection and its statements are one
 * thread's at a time. */
#ifndef STORAGE_DB_DB_H
#define STORAGE_DB_DB_H

#include "base/arena.h"
#include "base/error.h"
#include "base/span.h"

struct db;
struct db_statement;

enum db_mode { DB_READ, DB_WRITE };

/* Opens (DB_WRITE also creates) and sets up the connection: WAL, synchronous=FULL, foreign_keys, no
 * automatic checkpoint, busy timeout. */
struct db *db_open(const char *path, enum db_mode mode, struct error *err);
void db_close(struct db *db);
const char *db_path(const struct db *db);
/* Who else is told of what a connection changes: goes with the connection, borrowed; NULL until
 * set. */
enum db_companion { DB_PACK_TOUCHES, DB_CHANGE_FEED, DB_COMPANION_COUNT };
void db_set_companion(struct db *db, enum db_companion which, void *companion);
void *db_companion(const struct db *db, enum db_companion which);

/* For scripts (migrations) only; never with built strings. */
int db_run_script(struct db *db, const char *sql, struct error *err);
/* PRAGMA user_version / application_id. */
int db_get_version(struct db *db, int *out_version, int *out_application, struct error *err);
int db_set_version(struct db *db, int version, int application, struct error *err);

/* Begin takes the write lock at once; remembers the caller for messages about a leaked
 * transaction. */
#define db_begin(db, err) db_begin_at((db), __FILE__, __LINE__, (err))
int db_begin_at(struct db *db, const char *file, int line, struct error *err);
int db_commit(struct db *db, struct error *err); /* on failure all is rolled back */
/* After db_commit failed: whether the log may hold the transaction whole, as COMMIT itself broke
 * off. */
bool db_is_in_doubt(const struct db *db);
void db_rollback(struct db *db); /* nothing to do when no transaction is open */
/* False also when the engine gave the transaction up by itself (disk full, I/O error). Until
 * db_rollback, what would change something fails then, for the same reason. */
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

/* What stands for ?1, ?2, ... in a statement: made by the functions below. */
enum db_value_kind { DB_VALUE_END, DB_VALUE_NULL, DB_VALUE_NUMBER, DB_VALUE_BYTES };
struct db_value {
	enum db_value_kind kind;
	int64_t number;
	struct span bytes; /* borrowed until the statement is at its end or reset */
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

/* Values in the order of their numbers, as the calls below take them. */
#define DB_VALUES(...) ((const struct db_value[]){__VA_ARGS__ __VA_OPT__(, ){.kind = DB_VALUE_END}})

/* Each `sql` below is a static string: a statement is prepared once per connection and found again
 * by the address of its text. The values follow behind `err`:
 *     db_run(db, SQL_STEP_REMOVE, err, db_i64(id)) */

/* Runs a statement that gives no rows. exists when a uniqueness rule broke. */
#define db_run(db, sql, err, ...) db_run_values((db), (sql), DB_VALUES(__VA_ARGS__), (err))
int db_run_values(struct db *db, const char *sql, const struct db_value *values, struct error *err);
/* Inserts one row, as db_run does, and gives the number that the engine gave it. */
#define db_insert(db, sql, out_id, err, ...) \
	db_insert_values((db), (sql), DB_VALUES(__VA_ARGS__), (out_id), (err))
int db_insert_values(struct db *db, const char *sql, const struct db_value *values, int64_t *out_id,
	struct error *err);
/* Reads the first column of the first row. 1: it is there; 0: there is no row, and the output stays
 * as it was; -1: error. */
#define db_find_i64(db, sql, out, err, ...) \
	db_find_i64_values((db), (sql), DB_VALUES(__VA_ARGS__), (out), (err))
int db_find_i64_values(struct db *db, const char *sql, const struct db_value *values, int64_t *out,
	struct error *err);
/* Whether it gives a row: 1, 0; -1: error. */
#define db_exists(db, sql, err, ...) db_exists_values((db), (sql), DB_VALUES(__VA_ARGS__), (err))
int db_exists_values(
	struct db *db, const char *sql, const struct db_value *values, struct error *err);
/* The first column of the first row as bytes: copied into the arena, which says so when it has no
 * room for them. */
#define db_find_blob(db, sql, arena, out, err, ...) \
	db_find_blob_values((db), (sql), DB_VALUES(__VA_ARGS__), (arena), (out), (err))
int db_find_blob_values(struct db *db, const char *sql, const struct db_value *values,
	struct arena *arena, struct span *out, struct error *err);
/* A statement that gives rows, before its first one: db_step goes from row to row, db_reset leaves
 * it before its end. NULL with the error set on failure, which db_step passes on. */
#define db_query(db, sql, err, ...) db_query_values((db), (sql), DB_VALUES(__VA_ARGS__), (err))
struct db_statement *db_query_values(
	struct db *db, const char *sql, const struct db_value *values, struct error *err);
/* 1: a row is there; 0: done; -1: error, also for NULL, whose error is set already. */
int db_step(struct db_statement *statement, struct error *err);
/* NULL is fine. */
void db_reset(struct db_statement *statement);
int64_t db_column_i64(struct db_statement *statement, int column);
/* valid until the next step or reset */
struct span db_column_blob(struct db_statement *statement, int column);
bool db_column_is_null(struct db_statement *statement, int column);
/* From here on the connection keeps counts and sums of all tables, in the table `sums`
 * (docs/FORMAT.md, "Counts and sums"); where that has no row, everything is counted once. A
 * migration that changes tables removes the row first. */
int db_keep_sums(struct db *db, struct error *err);
/* The number of the last change that this connection has seen committed, its own or the one before:
 * each COMMIT that changes rows has the next. */
int64_t db_change(const struct db *db);
/* Pages of the file and its log that any connection of the process found damaged or could not read,
 * and those that were one flipped bit off and are right again: how often, since the first
 * connection was opened. */
uint64_t db_damage(const struct db *db);
uint64_t db_mended(const struct db *db);
/* Whether the pages of the file have checksums; one that lacks them gets them by
 * db_vacuum_whole. */
bool db_is_summed(const struct db *db);
/* From here on this connection reads pages of the file as they are, damaged or not: for a reader of
 * its own that can tell by itself what is right. */
void db_overlook(struct db *db);
int64_t db_changes(struct db *db);

/* WAL upkeep. A checkpoint that readers or a writer hold up does what it can and gives 0. */
int db_checkpoint_passive(struct db *db, struct error *err);
int db_checkpoint_restart(struct db *db, struct error *err);
/* in use in the WAL after this connection's last commit */
uint64_t db_wal_bytes(const struct db *db);
/* Whether the log stays as it is when the last connection closes; otherwise it is moved into the
 * file then. */
void db_keep_log(struct db *db, bool keeps);
/* The log that this connection's last commit was written to, by a name that changes when the log
 * begins again; and how many frames it had then. 0 before the first commit. */
uint64_t db_log_salt(const struct db *db);
uint32_t db_log_frames(const struct db *db);
/* A number that changes when another connection commits. */
int db_data_version(struct db *db, int64_t *out_version, struct error *err);
/* Everything into the file, and the log cut to nothing; waits a moment for readers and the writer,
 * then leaves it for another time (0). */
int db_checkpoint_truncate(struct db *db, struct error *err);
int db_free_pages(struct db *db, int64_t *out_pages, struct error *err);
/* Writes the whole file anew, which packs what deletes left half empty: takes as long as that
 * takes, and commits of others wait. */
int db_vacuum_whole(struct db *db, struct error *err);
int db_pages(struct db *db, int64_t *out_pages, struct error *err);
/* Gives up to `pages` free pages back to the file system; inside a transaction or outside. */
int db_vacuum_some(struct db *db, unsigned pages, struct error *err);

#endif
