/* SQL, whatever engine speaks it: connections, prepared statements, results. The one home of
 * sqlite3.h. Nothing outside knows an engine's error codes. A connection and its statements are one
 * thread's at a time. */
#ifndef STORAGE_DB_DB_H
#define STORAGE_DB_DB_H

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

/* The statement for this SQL text, prepared once per connection and found again by the text's
 * address: `sql` must be a static string. It comes reset, with nothing bound. NULL with the error
 * set on failure. */
struct db_statement *db_prepare(struct db *db, const char *sql, struct error *err);
/* Binds number 1, 2, ...; bytes must live until the statement is stepped to its end or reset. */
void db_bind_i64(struct db_statement *statement, int position, int64_t value);
void db_bind_blob(struct db_statement *statement, int position, struct span value);
/* 1: a row is there; 0: done; -1: error. */
int db_step(struct db_statement *statement, struct error *err);
/* Runs a statement that gives no rows, and resets it. -1 on error; exists when a uniqueness rule
 * broke. */
int db_execute(struct db_statement *statement, struct error *err);
/* Resets; call when leaving a SELECT before its end. NULL is fine. */
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
int64_t db_last_id(struct db *db);
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
