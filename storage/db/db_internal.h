/* A connection from inside: what the parts of storage/db/db share. */
#ifndef STORAGE_DB_DB_INTERNAL_H
#define STORAGE_DB_DB_INTERNAL_H

#define SQLITE_ENABLE_PREUPDATE_HOOK \
	1 /* what it declares, the library must have: configure looks */
#include <sqlite3.h>

#include "storage/db/db.h"
#include "storage/db/db_sums.h"

enum { DB_STATEMENT_SLOTS = 512 };

struct db_statement {
	struct db *db;
	sqlite3_stmt *handle;
	const char *sql;
	bool is_writing;
};

struct db {
	sqlite3 *handle;
	char *path;
	struct db_statement *slots[DB_STATEMENT_SLOTS];
	size_t statements;
	const char *begin_file; /* who began the open transaction */
	int begin_line;
	struct error lost; /* why SQLite gave it up, while it is begun; no kind: it did not */
	bool is_in_doubt;  /* the last COMMIT */
	/* from db_begin until db_commit or db_rollback: also when SQLite gave the transaction up */
	bool is_begun;
	uint64_t page_bytes;
	uint64_t wal_bytes;
	uint64_t log_salt; /* these two: of the log, after this connection's last COMMIT */
	uint64_t log_frames;
	int64_t rows_before; /* this transaction or savepoint, of all that the connection touched */
	struct db_sums *sums; /* NULL: this connection keeps none */
	void *companions[DB_COMPANION_COUNT];
};

/* The first column of the one row; corrupt without a row. */
int db_read_number(struct db *db, const char *sql, int64_t *out, struct error *err);
/* A transaction around which no sums are kept. */
int db_begin_alone(struct db *db, struct error *err);
int db_commit_alone(struct db *db, struct error *err);
/* The kind of an extended result code of SQLite. */
enum error_kind db_error_kind(int extended);
/* Behind a transaction that SQLite gave up: -1, with the reason. Each statement would be a
 * transaction of its own there. */
int db_refuse_lost(const struct db *db, struct error *err);
/* After a statement that failed: one that met damage may have changed a part of what it was to
 * change. */
void db_note_broken(struct db *db, const struct error *err);
/* Sets the error from the connection's last failure, while doing `what`. -1. */
int db_fail(struct db *db, const char *what, struct error *err);

#endif
