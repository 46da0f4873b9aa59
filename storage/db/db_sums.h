/* Counts and sums of a database's tables (table_sums.h), kept by the connection that changes them.
 * They stand in the one row of the table `sums`, beside the number of the change, and every COMMIT
 * brings both up to date. Of sqlite3.h's home. */
#ifndef STORAGE_DB_DB_SUMS_H
#define STORAGE_DB_DB_SUMS_H

#include "storage/db/db.h"
#include "storage/db/table_sums.h"

struct db_sums;
/* notes each row that the connection changes from here on */
struct db_sums *db_sums_new(struct db *db);
/* NULL is fine, here and below: there is nothing to do */
void db_sums_free(struct db_sums *sums);

/* The connection calls these around its transactions and statements. */
int db_sums_begin(struct db_sums *sums, struct error *err);
int db_sums_commit(struct db_sums *sums, struct error *err); /* last before COMMIT */
void db_sums_committed(struct db_sums *sums);                /* COMMIT went well */
void db_sums_rollback(struct db_sums *sums);
void db_sums_savepoint(struct db_sums *sums);
void db_sums_savepoint_rollback(struct db_sums *sums);
void db_sums_statement(struct db_sums *sums);          /* one that writes begins */
void db_sums_statement_rollback(struct db_sums *sums); /* it failed */
/* What the tables hold is not what the sums say, or nobody knows: until that is taken back,
 * db_sums_check and db_sums_commit fail with the first `why`. */
void db_sums_doubt(struct db_sums *sums, const struct error *why);
int db_sums_check(const struct db_sums *sums, struct error *err);
int64_t db_sums_change(const struct db_sums *sums); /* the number of the last committed change */

/* What the database says of its tables; not_found when it has no such row. */
int db_sums_load(struct db *db, struct table_sums *out, struct error *err);
/* The names of all tables, the schema's too. */
int db_sums_list(struct db *db, struct table_sums *out, struct error *err);
/* What one table has, read from the table itself. The schema counts as the table sqlite_schema. */
int db_sums_count(struct db *db, const char *table, struct table_sum *out, struct error *err);

#endif
