/* The inside of a connection, for the files of storage/db/db*.c. */
#ifndef STORAGE_DB_DB_INTERNAL_H
#define STORAGE_DB_DB_INTERNAL_H

#define SQLITE_ENABLE_PREUPDATE_HOOK \
	1 /* the library must be built with it too: configure checks that */
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
	const char *begin_file; /* the caller that began the open transaction */
	int begin_line;
	struct error lost; /* why SQLite gave up the begun transaction; kind none: it did not */
	bool is_in_doubt;  /* whether the last COMMIT may be in the log */
	/* from db_begin until db_commit or db_rollback, also after SQLite gave up the
	 * transaction */
	bool is_begun;
	uint64_t page_bytes;
	uint64_t wal_bytes;
	uint64_t log_salt; /* these two: of the log, after this connection's last COMMIT */
	uint64_t log_frames;
	/* of all that this connection touched, those before this transaction or savepoint */
	int64_t rows_before;
	struct db_sums *sums; /* NULL: this connection keeps none */
	struct db_recorder recorder;
	bool has_recorded; /* the recorder has a record of the open transaction */
	void *contexts[DB_CONTEXT_COUNT];
};

/* Reads the first column of the only row; corrupt when there is no row. */
int db_read_number(struct db *db, const char *sql, int64_t *out, struct error *err);
/* A transaction without sums. */
int db_begin_alone(struct db *db, struct error *err);
int db_commit_alone(struct db *db, struct error *err);
/* The error kind of an extended result code of SQLite. */
enum error_kind db_error_kind(int extended);
/* Fails with the reason after SQLite gave up the transaction, because each statement would then be
 * a transaction of its own. */
int db_refuse_lost(const struct db *db, struct error *err);
/* To be called after a statement failed: if it met damage, it may have changed only a part of its
 * rows. */
void db_note_broken(struct db *db, const struct error *err);
/* Sets the error from the connection's last failure, while doing `what`. Returns -1. */
int db_fail(struct db *db, const char *what, struct error *err);

#endif
