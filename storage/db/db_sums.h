/* Counts and sums of a database's tables (table_sums.h), kept by the connection that changes them.
 * They are stored in the one row of the table `sums`, together with the number of the change, and
 * every COMMIT updates both. Part of sqlite3.h's home. */
#ifndef STORAGE_DB_DB_SUMS_H
#define STORAGE_DB_DB_SUMS_H

#include "storage/db/db.h"
#include "storage/db/db_rows.h"
#include "storage/db/table_sums.h"

struct db_sums;
/* From here on it notes each row that the connection changes. */
struct db_sums *db_sums_new(struct db *db);
/* NULL is fine, here and below: then the call does nothing. */
void db_sums_free(struct db_sums *sums);

/* The connection calls these around its transactions and statements. */
int db_sums_begin(struct db_sums *sums, struct error *err);
int db_sums_commit(struct db_sums *sums, struct error *err); /* the last step before COMMIT */
void db_sums_committed(struct db_sums *sums);                /* after a successful COMMIT */
void db_sums_rollback(struct db_sums *sums);
void db_sums_savepoint(struct db_sums *sums);
void db_sums_savepoint_rollback(struct db_sums *sums);
void db_sums_statement(struct db_sums *sums);          /* before a statement that writes */
void db_sums_statement_rollback(struct db_sums *sums); /* after it failed */
/* The sums may differ from the content of the tables. Until that is rolled back, db_sums_check and
 * db_sums_commit fail with the first `why`. */
void db_sums_doubt(struct db_sums *sums, const struct error *why);
int db_sums_check(const struct db_sums *sums, struct error *err);
int64_t db_sums_change(const struct db_sums *sums); /* the number of the last committed change */
/* From here on it also keeps the rows that a transaction changes; taken over. */
void db_sums_keep_rows(struct db_sums *sums, struct db_rows *rows);
/* After db_sums_commit: returns 1 with what the transaction changed, 0 when it changed no row. */
int db_sums_record(const struct db_sums *sums, struct db_record *out, struct error *err);
/* Counts all tables, and makes that the stored sums, of this change: for a database that was filled
 * with rows from elsewhere. On a connection that keeps no sums. */
int db_sums_establish(struct db *db, int64_t change, struct error *err);

/* Reads the stored sums; not_found when there are none. */
int db_sums_load(struct db *db, struct table_sums *out, struct error *err);
/* What they add up to (table_sums_total). */
int db_sums_total(struct db *db, uint64_t *out, struct error *err);
/* Lists the names of all tables, the schema too. */
int db_sums_list(struct db *db, struct table_sums *out, struct error *err);
/* Counts the rows of one table by reading it. The schema counts as the table sqlite_schema. */
int db_sums_count(struct db *db, const char *table, struct table_sum *out, struct error *err);

#endif
