/* Rows of all tables by the names of the tables: what a transaction has changed, what a database
 * holds, and a database filled with rows. The journal is made of these (row_bytes.h). Part of
 * sqlite3.h's home; one thread, that of the connection. Internal to storage. */
#ifndef STORAGE_DB_DB_ROWS_H
#define STORAGE_DB_DB_ROWS_H

#include "storage/db/db.h"
#include "storage/db/row_bytes.h"

/* Gives each row of each table but `sums`, encoded as ROW_PUT, then the next numbers of tables. In
 * a snapshot all of it is one state. `row` is valid during the call; -1 ends the scan. */
typedef int db_rows_take_fn(void *owner, struct span row, struct error *err);
int db_rows_scan(struct db *db, db_rows_take_fn *take, void *owner, struct error *err);

/* Fills the tables of a new database with rows, by the names of the tables. Sums are not kept, and
 * references between rows not judged: rows come in any order. Nothing is synced either, so the file
 * counts only once its maker has synced it. */
struct db_rows_writer;
/* Removes the rows of all tables first. */
struct db_rows_writer *db_rows_writer_new(struct db *db, struct error *err);
void db_rows_writer_free(struct db_rows_writer *writer); /* NULL is fine */
/* Does what `rows` (row_bytes.h) say, one after another. corrupt when they do not fit the
 * tables. */
int db_rows_write(struct db_rows_writer *writer, struct span rows, struct error *err);

/* What the open transaction of a connection has changed. The connection calls these around its
 * transactions and statements, and for each row that changes. */
struct db_rows;
struct db_rows *db_rows_new(struct db *db, struct error *err);
void db_rows_free(struct db_rows *rows); /* NULL is fine, here and below */
void db_rows_begin(struct db_rows *rows);
void db_rows_savepoint(struct db_rows *rows);
void db_rows_savepoint_rollback(struct db_rows *rows);
void db_rows_statement(struct db_rows *rows);
void db_rows_statement_rollback(struct db_rows *rows);
/* Only inside SQLite's pre-update hook. */
void db_rows_note(struct db_rows *rows, const char *table, bool had_row, bool has_row);
/* The changes so far, valid until the next one. too_large when they had no room. */
int db_rows_changed(const struct db_rows *rows, struct span *out, struct error *err);

#endif
