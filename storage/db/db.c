/* Connections and transactions: their setup, their error messages, and the upkeep of the log.
 * SQLite may give up a transaction by itself (disk full, I/O error); `is_begun` and `lost` remember
 * that until db_rollback, because statements after it would each be a transaction of their own.
 * Statements are in db_statement.c. */
#include "storage/db/db_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/db/db_file.h"
#include "storage/db/page_sum.h"

enum {
	BUSY_TIMEOUT_MS = 10000,
	RESTART_TIMEOUT_MS = 50,
	WAL_FRAME_HEADER_BYTES = 24,
	SAVEPOINT_MEMORY_BYTES = 120 * 1024
};

static const char SQL_BEGIN[] = "BEGIN IMMEDIATE";
static const char SQL_BEGIN_READ[] = "BEGIN";
static const char SQL_COMMIT[] = "COMMIT";
static const char SQL_ROLLBACK[] = "ROLLBACK";
static const char SQL_SAVEPOINT[] = "SAVEPOINT step";
static const char SQL_SAVEPOINT_RELEASE[] = "RELEASE step";
static const char SQL_SAVEPOINT_ROLLBACK[] = "ROLLBACK TO step";
static const char SQL_GET_VERSION[] = "PRAGMA user_version";
static const char SQL_GET_APPLICATION[] = "PRAGMA application_id";
static const char SQL_GET_PAGE_SIZE[] = "PRAGMA page_size";
static const char SQL_GET_DATA_VERSION[] = "PRAGMA data_version";
static const char SQL_GET_PAGES[] = "PRAGMA page_count";
static const char SQL_GET_FREE_PAGES[] = "PRAGMA freelist_count";

/* Has an effect only before the first page is written. It writes even to a file that already has
 * pages and this setting, so it is left out there: nothing is written to a file that may be the
 * wrong one. */
static const char SQL_SETUP_NEW[] = "PRAGMA auto_vacuum=INCREMENTAL;";
static const char SQL_SETUP_WRITE[] =
	"PRAGMA journal_mode=WAL;"
	"PRAGMA synchronous=FULL;"
	"PRAGMA foreign_keys=ON;"
	/* Debian's default clears deleted content, in pages that would not be written otherwise */
	"PRAGMA secure_delete=OFF;"
	"PRAGMA wal_autocheckpoint=0;"
	"PRAGMA cache_size=-16384;";
static const char SQL_SETUP_READ[] = "PRAGMA query_only=ON;"
				     "PRAGMA wal_autocheckpoint=0;"
				     "PRAGMA cache_size=-4096;";

static const struct {
	int code;
	enum error_kind kind;
} error_kinds[] = {
	{SQLITE_FULL, ERROR_NO_SPACE},
	{SQLITE_BUSY, ERROR_BUSY},
	{SQLITE_LOCKED, ERROR_BUSY},
	{SQLITE_CORRUPT, ERROR_DAMAGED},
	{SQLITE_NOTADB, ERROR_CORRUPT},
	{SQLITE_READONLY, ERROR_READ_ONLY},
	{SQLITE_PERM, ERROR_DENIED},
	{SQLITE_AUTH, ERROR_DENIED},
	{SQLITE_NOMEM, ERROR_NO_MEMORY},
	{SQLITE_TOOBIG, ERROR_TOO_LARGE},
	{SQLITE_CONSTRAINT, ERROR_INVALID},
};

static int set_failure(struct db *db, const char *what, struct error *err);
static bool has_lost_all(const struct db *db);
static int fail_to_write(const struct db *db, const struct db_trouble *trouble,
	enum error_kind kind, struct error *err);
static const char *name_of(const struct db *db);
static int fail_on_file(const struct db *db, const struct db_trouble *trouble, struct error *err);
static bool is_lost(const struct db *db);
static void configure(void);
static int set_up(struct db *db, enum db_mode mode, struct error *err);
static int set_page_form(struct db *db, struct error *err);
static int db_note_wal(void *owner, sqlite3 *handle, const char *name, int frames);
static void record(struct db *db);
static void settle_record(struct db *db, enum db_outcome outcome);
static int run_commit(struct db *db, struct error *err);
static int restart(struct db *db, int mode, struct error *err);

enum error_kind db_error_kind(int extended)
{
	if (extended == SQLITE_CONSTRAINT_UNIQUE || extended == SQLITE_CONSTRAINT_PRIMARYKEY ||
		extended == SQLITE_CONSTRAINT_ROWID)
		return ERROR_EXISTS;
	for (size_t i = 0; i < sizeof(error_kinds) / sizeof(error_kinds[0]); i++)
		if (error_kinds[i].code == (extended & 0xff))
			return error_kinds[i].kind;
	return ERROR_IO;
}

int db_fail(struct db *db, const char *what, struct error *err)
{
	set_failure(db, what, err);
	if (is_lost(db) && db->lost.kind == ERROR_NONE)
		db->lost = *err;
	return -1;
}

int db_refuse_lost(const struct db *db, struct error *err)
{
	if (!is_lost(db))
		return 0;
	if (db->lost.kind == ERROR_NONE)
		return error_set(err, ERROR_DAMAGED,
			"%s: the transaction was given up, so nothing more can be changed in it.",
			name_of(db));
	*err = db->lost;
	return -1;
}

int db_read_number(struct db *db, const char *sql, int64_t *out, struct error *err)
{
	const int got = db_find_i64(db, sql, out, err);
	if (got == 0)
		return error_set(err, ERROR_CORRUPT, "%s: '%s' must give a row, and gave none.",
			db->path, sql);
	return got == 1 ? 0 : -1;
}

struct db *db_open(const char *path, enum db_mode mode, struct error *err)
{
	struct db *const db = memory_new(sizeof(*db));
	configure();
	db_file_register();
	db->path = memory_copy_text(path);
	/* Readers open for writing too, because a WAL reader must be able to write the
	 * shared-memory file. query_only keeps them from everything else. */
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
		(mode == DB_WRITE ? SQLITE_OPEN_CREATE : 0);
	if (sqlite3_open_v2(path, &db->handle, flags, db_file_vfs) != SQLITE_OK) {
		if (db->handle != NULL)
			db_fail(db, "opening", err);
		else
			error_set(err, ERROR_NO_MEMORY, "%s: opening: out of memory.", path);
		db_close(db);
		return NULL;
	}
	if (mode == DB_LOOK)
		db_file_only_look(db->handle);
	if (set_up(db, mode, err) != 0) {
		db_keep_log(db, true); /* a file that cannot be used stays as it is */
		db_close(db);
		return NULL;
	}
	return db;
}

void db_close(struct db *db)
{
	if (db == NULL)
		return;
	for (size_t i = 0; i < DB_STATEMENT_SLOTS; i++) {
		if (db->slots[i] != NULL)
			sqlite3_finalize(db->slots[i]->handle);
		free(db->slots[i]);
	}
	db_sums_free(db->sums);
	const int result = sqlite3_close(db->handle);
	ASSERT(result == SQLITE_OK);
	free(db->path);
	free(db);
}

const char *db_path(const struct db *db)
{
	return db->path;
}

void db_set_context(struct db *db, enum db_context which, void *context)
{
	ASSERT((unsigned)which < DB_CONTEXT_COUNT);
	db->contexts[which] = context;
}

void *db_context(const struct db *db, enum db_context which)
{
	ASSERT((unsigned)which < DB_CONTEXT_COUNT);
	return db->contexts[which];
}

void db_note_broken(struct db *db, const struct error *err)
{
	if (db->is_begun && err->kind == ERROR_DAMAGED)
		db_sums_doubt(db->sums, err);
}

int db_run_script(struct db *db, const char *sql, struct error *err)
{
	if (db_refuse_lost(db, err) != 0)
		return -1;
	if (sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK)
		return 0;
	db_fail(db, "running a script", err);
	db_note_broken(db, err);
	return -1;
}

int db_get_version(struct db *db, int *out_version, int *out_application, struct error *err)
{
	int64_t version = 0;
	int64_t application = 0;
	if (db_read_number(db, SQL_GET_VERSION, &version, err) != 0 ||
		db_read_number(db, SQL_GET_APPLICATION, &application, err) != 0)
		return -1;
	*out_version = (int)version;
	*out_application = (int)application;
	return 0;
}

int db_set_version(struct db *db, int version, int application, struct error *err)
{
	char sql[96]; /* a PRAGMA takes no bound values; both are numbers of this program */
	ASSERT(version >= 0);
	snprintf(sql, sizeof(sql), "PRAGMA user_version=%d; PRAGMA application_id=%d;", version,
		application);
	return db_run_script(db, sql, err);
}

int db_begin_alone(struct db *db, struct error *err)
{
	return db_run(db, SQL_BEGIN, err);
}

int db_commit_alone(struct db *db, struct error *err)
{
	return db_run(db, SQL_COMMIT, err);
}

int db_begin_at(struct db *db, const char *file, int line, struct error *err)
{
	if (db_in_transaction(db))
		error_assert_failed(
			"the transaction begun here has ended", db->begin_file, db->begin_line);
	/* also when the transaction before was given up, and nobody rolled it back */
	db->is_begun = false;
	if (db_run(db, SQL_BEGIN, err) != 0)
		return -1;
	db->is_begun = true;
	db->lost = (struct error){0};
	db->begin_file = file;
	db->begin_line = line;
	db->rows_before = sqlite3_total_changes64(db->handle);
	if (db_sums_begin(db->sums, err) == 0)
		return 0;
	db_rollback(db);
	return -1;
}

int db_commit(struct db *db, struct error *err)
{
	db->is_in_doubt = false;
	if (db_refuse_lost(db, err) != 0 || db_sums_commit(db->sums, err) != 0 ||
		run_commit(db, err) != 0) {
		db_rollback(db);
		settle_record(db, db->is_in_doubt ? DB_IN_DOUBT : DB_ROLLED_BACK);
		return -1;
	}
	db_sums_committed(db->sums);
	settle_record(db, DB_COMMITTED);
	db->is_begun = false;
	return 0;
}

int db_set_recorder(struct db *db, const struct db_recorder *recorder, struct error *err)
{
	ASSERT(db->sums != NULL && db->recorder.take == NULL);
	struct db_rows *rows = db_rows_new(db, err);
	if (rows == NULL)
		return -1;
	db_sums_keep_rows(db->sums, rows);
	db->recorder = *recorder;
	return 0;
}

bool db_is_in_doubt(const struct db *db)
{
	return db->is_in_doubt;
}

void db_rollback(struct db *db)
{
	struct error ignored;
	db_sums_rollback(db->sums);
	db_file_set_ending(db->handle, true);
	if (db_in_transaction(db) && db_run(db, SQL_ROLLBACK, &ignored) != 0)
		ASSERT(!db_in_transaction(db));
	db_file_set_ending(db->handle, false);
	db->is_begun = false;
}

bool db_in_transaction(const struct db *db)
{
	return sqlite3_get_autocommit(db->handle) == 0;
}

int db_savepoint(struct db *db, struct error *err)
{
	ASSERT(db_in_transaction(db));
	db->rows_before = sqlite3_total_changes64(db->handle);
	db_sums_savepoint(db->sums);
	return db_run(db, SQL_SAVEPOINT, err);
}

int64_t db_rows_touched(const struct db *db)
{
	ASSERT(sqlite3_total_changes64(db->handle) >= db->rows_before);
	return sqlite3_total_changes64(db->handle) - db->rows_before;
}

int db_savepoint_release(struct db *db, struct error *err)
{
	if (db_refuse_lost(db, err) != 0 || db_sums_check(db->sums, err) != 0)
		return -1;
	return db_run(db, SQL_SAVEPOINT_RELEASE, err);
}

void db_savepoint_rollback(struct db *db)
{
	struct error ignored;
	db_sums_savepoint_rollback(db->sums);
	/* If the savepoint cannot be undone alone, the whole transaction is undone. */
	if (db_in_transaction(db) &&
		(db_run(db, SQL_SAVEPOINT_ROLLBACK, &ignored) != 0 ||
			db_run(db, SQL_SAVEPOINT_RELEASE, &ignored) != 0))
		db_rollback(db);
}

int db_snapshot_begin(struct db *db, struct error *err)
{
	return db_run(db, SQL_BEGIN_READ, err);
}

/* Nothing was written, so COMMIT is the cheaper of the two. */
void db_snapshot_end(struct db *db)
{
	struct error ignored;
	if (db_run(db, SQL_COMMIT, &ignored) != 0)
		db_rollback(db);
}

void db_keep_log(struct db *db, bool keeps)
{
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keeps ? 1 : 0, NULL);
}

uint64_t db_log_salt(const struct db *db)
{
	return db->log_salt;
}

uint32_t db_log_frames(const struct db *db)
{
	return (uint32_t)db->log_frames;
}

int db_probe(struct db *db, bool *out_has_name, struct error *err)
{
	int os_errno;
	char reason[128];
	if (db_file_probe(db->handle, &os_errno, out_has_name))
		return 0;
	return error_set(err, ERROR_DAMAGED, "catalog.db cannot be read: %s.",
		os_errno != 0 ? strerror_r(os_errno, reason, sizeof(reason))
			      : "it is empty, or is not a database any more");
}

uint64_t db_damage(const struct db *db)
{
	return db_file_damage(db->handle);
}

uint64_t db_mended(const struct db *db)
{
	return db_file_mended(db->handle);
}

void db_overlook(struct db *db)
{
	db_file_overlook(db->handle, true);
}

bool db_is_summed(const struct db *db)
{
	return db_file_is_summed(db->handle);
}

int64_t db_change(const struct db *db)
{
	return db_sums_change(db->sums);
}

int db_checkpoint_passive(struct db *db, struct error *err)
{
	const int result =
		sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	if (result != SQLITE_OK && (result & 0xff) != SQLITE_BUSY)
		return db_fail(db, "checkpointing", err);
	return 0;
}

int db_checkpoint_restart(struct db *db, struct error *err)
{
	return restart(db, SQLITE_CHECKPOINT_RESTART, err);
}

int db_checkpoint_truncate(struct db *db, struct error *err)
{
	return restart(db, SQLITE_CHECKPOINT_TRUNCATE, err);
}

int db_data_version(struct db *db, int64_t *out_version, struct error *err)
{
	return db_read_number(db, SQL_GET_DATA_VERSION, out_version, err);
}

int db_pages(struct db *db, int64_t *out_pages, struct error *err)
{
	return db_read_number(db, SQL_GET_PAGES, out_pages, err);
}

int db_vacuum_whole(struct db *db, struct error *err)
{
	return db_run_script(db, "VACUUM;", err);
}

int db_free_pages(struct db *db, int64_t *out_pages, struct error *err)
{
	return db_read_number(db, SQL_GET_FREE_PAGES, out_pages, err);
}

uint64_t db_wal_bytes(const struct db *db)
{
	return db->wal_bytes;
}

int db_vacuum_some(struct db *db, unsigned pages, struct error *err)
{
	char sql[64];
	ASSERT(pages >= 1); /* 0 means all pages to SQLite */
	snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%u);", pages);
	return db_run_script(db, sql, err);
}

static int set_failure(struct db *db, const char *what, struct error *err)
{
	const enum error_kind kind = has_lost_all(db)
		? ERROR_DAMAGED
		: db_error_kind(sqlite3_extended_errcode(db->handle));
	const struct db_trouble trouble = db_file_take_trouble(db->handle);
	if (kind == ERROR_IO && trouble.kind == DB_TROUBLE_WRITE && trouble.os_errno != 0)
		return fail_to_write(db, &trouble, kind, err);
	if ((kind == ERROR_IO || kind == ERROR_DAMAGED) && trouble.kind != DB_TROUBLE_NONE &&
		trouble.kind != DB_TROUBLE_WRITE)
		return fail_on_file(db, &trouble, err);
	if (kind == ERROR_BUSY)
		return error_set(
			err, kind, "%s is locked by another program: %s.", name_of(db), what);
	return error_set(err, kind, "%s: %s: %s.", db->path, what, sqlite3_errmsg(db->handle));
}

/* To SQLite a file that was emptied is a database without tables. */
static bool has_lost_all(const struct db *db)
{
	int os_errno;
	bool has_name;
	return sqlite3_errcode(db->handle) == SQLITE_ERROR &&
		!db_file_probe(db->handle, &os_errno, &has_name);
}

static int fail_to_write(const struct db *db, const struct db_trouble *trouble,
	enum error_kind kind, struct error *err)
{
	if (trouble->os_errno == EROFS)
		kind = ERROR_READ_ONLY;
	error_set(err, kind, "%s cannot be written: %s.", name_of(db),
		strerrordesc_np(trouble->os_errno));
	err->os_errno = trouble->os_errno;
	return -1;
}

/* The name of the file without its folder: clients see some of the messages, and need not know
 * where the file lies. */
static const char *name_of(const struct db *db)
{
	const char *slash = strrchr(db->path, '/');
	return slash != NULL ? slash + 1 : db->path;
}

static int fail_on_file(const struct db *db, const struct db_trouble *trouble, struct error *err)
{
	static const char *const what[] = {
		[DB_TROUBLE_PAGE] = "does not match its checksum",
		[DB_TROUBLE_SHORT] = "lies after the end of the file, which was truncated",
		[DB_TROUBLE_LOG] = "differs from what was written to the log",
		[DB_TROUBLE_READ] = "cannot be read",
	};
	char page[32] = "a page";
	char reason[80] = "";
	ASSERT((size_t)trouble->kind < sizeof(what) / sizeof(what[0]) &&
		what[trouble->kind] != NULL);
	if (trouble->page != 0)
		snprintf(page, sizeof(page), "page %u", trouble->page);
	if (trouble->kind == DB_TROUBLE_READ)
		snprintf(reason, sizeof(reason), " (%s)", strerrordesc_np(trouble->os_errno));
	error_set(err, ERROR_DAMAGED,
		"%s: %s %s%s. The content of objects is not affected. Requests that need this page"
		" fail until it is mended (docs/OPERATIONS.md, \"A damaged catalog\").",
		name_of(db), page, what[trouble->kind], reason);
	err->os_errno = trouble->os_errno;
	return -1;
}

static bool is_lost(const struct db *db)
{
	return db->is_begun && !db_in_transaction(db);
}

/* Settings of the whole process, which work only before its first connection is opened; later calls
 * change nothing. SQLite's count of all memory is off, because it takes a lock at each allocation.
 * A savepoint's undo data stays in memory instead of a file unless a change is very large: it goes
 * to the file in one write, and SQLite's own file layer writes at most 128 KiB at once. */
static void configure(void)
{
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	sqlite3_config(SQLITE_CONFIG_STMTJRNL_SPILL, SAVEPOINT_MEMORY_BYTES);
}

static int set_up(struct db *db, enum db_mode mode, struct error *err)
{
	sqlite3_extended_result_codes(db->handle, 1);
	sqlite3_busy_timeout(db->handle, BUSY_TIMEOUT_MS);
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	if (mode == DB_WRITE && set_page_form(db, err) != 0)
		return -1;
	if (db_run_script(db, mode == DB_WRITE ? SQL_SETUP_WRITE : SQL_SETUP_READ, err) != 0)
		return -1;
	int64_t page_bytes = 0;
	if (db_read_number(db, SQL_GET_PAGE_SIZE, &page_bytes, err) != 0)
		return -1;
	db->page_bytes = (uint64_t)page_bytes;
	sqlite3_wal_hook(db->handle, db_note_wal, db);
	return 0;
}

/* Gives pages room for a checksum: those of a new file at once, others at the next VACUUM. */
static int set_page_form(struct db *db, struct error *err)
{
	int reserved = PAGE_SUM_BYTES;
	if (db_run_script(db, "PRAGMA page_size=4096;", err) !=
		0) /* first: it forgets what is reserved */
		return -1;
	sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
	int64_t pages;
	if (db_read_number(db, SQL_GET_PAGES, &pages, err) != 0)
		return -1;
	return pages > 0 ? 0 : db_run_script(db, SQL_SETUP_NEW, err);
}

/* Called after each commit of this connection, with the frames in the WAL. An attached file has a
 * log of its own. */
static int db_note_wal(void *owner, sqlite3 *handle, const char *name, int frames)
{
	struct db *const db = owner;
	ASSERT(frames >= 0);
	if (strcmp(name, "main") != 0)
		return SQLITE_OK;
	db->log_salt = db_file_written_salt(handle);
	db->log_frames = (uint64_t)frames;
	db->wal_bytes = (uint64_t)frames * (db->page_bytes + WAL_FRAME_HEADER_BYTES);
	return SQLITE_OK;
}

static void record(struct db *db)
{
	struct db_record changed;
	struct error ignored; /* the recorder then knows that it lacks a change */
	const int got =
		db->recorder.take == NULL ? 0 : db_sums_record(db->sums, &changed, &ignored);
	if (got < 0)
		db->recorder.lose(db->recorder.owner);
	if (got <= 0)
		return;
	db->recorder.take(db->recorder.owner, &changed);
	db->has_recorded = true;
}

static void settle_record(struct db *db, enum db_outcome outcome)
{
	if (db->has_recorded)
		db->recorder.settle(db->recorder.owner, outcome);
	db->has_recorded = false;
}

/* COMMIT leaves the transaction open when a rule of a table refuses it. A full disk ends it, but
 * then the log lacks bytes of the last frame, without which the other frames mean nothing. */
static int run_commit(struct db *db, struct error *err)
{
	record(db);
	db_file_set_ending(db->handle, true);
	int result = db_run(db, SQL_COMMIT, err);
	db_file_set_ending(db->handle, false);
	db->is_in_doubt = result != 0 && !db_in_transaction(db) && err->kind != ERROR_NO_SPACE;
	return result;
}

/* The committer waits here, or behind it, with every queued change: so it must not wait long. */
static int restart(struct db *db, int mode, struct error *err)
{
	sqlite3_busy_timeout(db->handle, RESTART_TIMEOUT_MS);
	const int result = sqlite3_wal_checkpoint_v2(db->handle, NULL, mode, NULL, NULL);
	sqlite3_busy_timeout(db->handle, BUSY_TIMEOUT_MS);
	if (result == SQLITE_OK)
		db->wal_bytes = 0;
	else if ((result & 0xff) != SQLITE_BUSY)
		return db_fail(db, "restarting the write-ahead log", err);
	return 0;
}
