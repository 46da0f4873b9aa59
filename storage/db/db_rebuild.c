/* Works like VACUUM, except that VACUUM copies the indexes as they are. The tables are made in a
 * file of their own and filled, the indexes are made there, and all pages are copied back in one
 * transaction.
 *
 *   schema of tables -> scratch <- rows (attached) ; settle ; indexes ; scratch -> database (backup)
 *
 * References between rows (REFERENCES) are not judged meanwhile: tables come in the order of their
 * names, and a row stays even if its parent was lost. The sums report lost rows (db_check.h). */
#include "storage/db/db_rebuild.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "storage/db/db_file.h"
#include "storage/db/db_internal.h"

struct rebuild_run {
	struct db *from;
	struct db *to;
	const struct db_rebuild *rebuild;
	struct table_sums sums;
};

static const char SQL_MAKE_TABLES[] = "SELECT sql FROM sqlite_schema WHERE type = 'table'"
				      " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
static const char SQL_MAKE_INDEXES[] =
	"SELECT sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
	" ORDER BY name";
/* The condition keeps SQLite from copying whole pages, those of indexes too, instead of rows. */
static const char SQL_COPY_TABLES[] =
	"SELECT 'INSERT INTO rebuilt.\"' || name || '\" SELECT * FROM main.\"' || name ||"
	" '\" NOT INDEXED WHERE true' FROM sqlite_schema WHERE type = 'table' AND"
	" name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
/* AUTOINCREMENT continues where it was; inserting the rows has made entries of its own. */
static const char SQL_COPY_SEQUENCES[] =
	"DELETE FROM rebuilt.sqlite_sequence;"
	" INSERT INTO rebuilt.sqlite_sequence SELECT * FROM main.sqlite_sequence WHERE true";
static const char SQL_HAS_SEQUENCES[] =
	"SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_sequence'";

static void remove_scratch(const char *path);
static int rebuild_into(struct rebuild_run *run, struct error *err);
static int make_tables(struct rebuild_run *run, struct error *err);
static int run_each(struct db *from, const char *query, struct db *to, struct error *err);
static int copy_tables(struct rebuild_run *run, struct error *err);
static int copy_attached(struct rebuild_run *run, struct error *err);
static void judge_references(struct db *db, bool judges);
static int copy_rows(struct rebuild_run *run, struct error *err);
static int settle(struct rebuild_run *run, struct error *err);
static int shift_sums(struct rebuild_run *run, int sign, struct error *err);
static int store_sums(struct db *db, const struct table_sums *sums, struct error *err);
static int copy_pages_back(struct rebuild_run *run, struct error *err);

int db_rebuild(struct db *db, const struct db_rebuild *rebuild, struct error *err)
{
	ASSERT(!db_in_transaction(db));
	ASSERT((rebuild->settle_tables == NULL) == (rebuild->settle_sql == NULL));
	remove_scratch(rebuild->scratch);
	struct rebuild_run *run = memory_new(sizeof(*run));
	run->from = db;
	run->rebuild = rebuild;
	run->to = db_open(rebuild->scratch, DB_WRITE, err);
	int result = run->to == NULL ? -1 : rebuild_into(run, err);
	db_close(run->to);
	free(run);
	remove_scratch(rebuild->scratch);
	db_sums_rollback(db->sums); /* they are read again at the next begin */
	if (db->recorder.lose != NULL) /* rows may have been settled */
		db->recorder.lose(db->recorder.owner);
	return result == 0 ? 0 : error_wrap(err, "rebuilding the catalog from its tables");
}

static void remove_scratch(const char *path)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};
	const struct file_ops *files = file_system();
	char name[4096];
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++)
		if (snprintf(name, sizeof(name), "%s%s", path, suffixes[i]) < (int)sizeof(name))
			files->unlink(files, name);
}

static int rebuild_into(struct rebuild_run *run, struct error *err)
{
	if (db_run_script(run->to, "PRAGMA synchronous=OFF", err) != 0 ||
		make_tables(run, err) != 0 || copy_tables(run, err) != 0 || settle(run, err) != 0 ||
		run_each(run->from, SQL_MAKE_INDEXES, run->to, err) != 0)
		return -1;
	return copy_pages_back(run, err);
}

static int make_tables(struct rebuild_run *run, struct error *err)
{
	int version;
	int application;
	if (db_get_version(run->from, &version, &application, err) != 0 ||
		db_set_version(run->to, version, application, err) != 0)
		return -1;
	return run_each(run->from, SQL_MAKE_TABLES, run->to, err);
}

/* Runs on `to` each text that the query gives on `from`. */
static int run_each(struct db *from, const char *query, struct db *to, struct error *err)
{
	sqlite3_stmt *rows = NULL;
	int got = sqlite3_prepare_v2(from->handle, query, -1, &rows, NULL);
	int result = got == SQLITE_OK ? 0 : db_fail(from, query, err);
	while (result == 0 && (got = sqlite3_step(rows)) == SQLITE_ROW)
		result = db_run_script(to, (const char *)sqlite3_column_text(rows, 0), err);
	if (result == 0 && got != SQLITE_DONE)
		result = db_fail(from, query, err);
	sqlite3_finalize(rows);
	return result;
}

static int copy_tables(struct rebuild_run *run, struct error *err)
{
	char *attach = sqlite3_mprintf("ATTACH %Q AS rebuilt", run->rebuild->scratch);
	struct error ignored;
	int result = db_run_script(run->from, attach, err);
	sqlite3_free(attach);
	if (result != 0)
		return -1;
	result = copy_attached(run, err);
	(void)db_run_script(run->from, "DETACH rebuilt", &ignored);
	return result;
}

/* One transaction covers both files: nothing that is read changes meanwhile. */
static int copy_attached(struct rebuild_run *run, struct error *err)
{
	int result = db_run_script(run->from, "PRAGMA rebuilt.synchronous=OFF", err);
	judge_references(run->from, false);
	if (result == 0)
		result = db_begin_alone(run->from, err);
	if (result == 0)
		result = copy_rows(run, err) == 0 ? db_commit_alone(run->from, err) : -1;
	db_rollback(run->from);
	judge_references(run->from, true);
	return result;
}

/* Runs outside of transactions. It cannot fail, so that the rules are in force again whatever
 * happened. */
static void judge_references(struct db *db, bool judges)
{
	(void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_FKEY, (int)judges, NULL);
}

static int copy_rows(struct rebuild_run *run, struct error *err)
{
	int64_t has_sequences = 0;
	int result = run_each(run->from, SQL_COPY_TABLES, run->from, err);
	if (result == 0)
		result = db_read_number(run->from, SQL_HAS_SEQUENCES, &has_sequences, err);
	if (result == 0 && has_sequences != 0)
		result = db_run_script(run->from, SQL_COPY_SEQUENCES, err);
	return result;
}

/* The sums follow what is settled, and nothing else that may have gone wrong with the tables. */
static int settle(struct rebuild_run *run, struct error *err)
{
	if (run->rebuild->settle_tables == NULL)
		return 0;
	if (db_sums_load(run->to, &run->sums, err) != 0 || shift_sums(run, -1, err) != 0 ||
		db_run_script(run->to, run->rebuild->settle_sql, err) != 0 ||
		shift_sums(run, 1, err) != 0)
		return -1;
	return store_sums(run->to, &run->sums, err);
}

/* Adds the present content of the tables to their sums (sign 1) or subtracts it (sign -1). */
static int shift_sums(struct rebuild_run *run, int sign, struct error *err)
{
	ASSERT(sign == 1 || sign == -1);
	for (const char *const *table = run->rebuild->settle_tables; *table != NULL; table++) {
		struct table_sum found;
		struct table_sum *said = &run->sums.tables[table_sums_place(&run->sums, *table)];
		if (db_sums_count(run->to, *table, &found, err) != 0)
			return -1;
		said->rows += sign * found.rows;
		said->sum += sign > 0 ? found.sum : -found.sum;
	}
	return 0;
}

static int store_sums(struct db *db, const struct table_sums *sums, struct error *err)
{
	static const char SQL_SET[] = "UPDATE sums SET tables = ?1";
	struct buffer bytes;
	buffer_init(&bytes, TABLE_SUMS_MAX_BYTES);
	table_sums_encode(sums, &bytes);
	int result = db_run(db, SQL_SET, err, db_blob(buffer_span(&bytes)));
	buffer_release(&bytes);
	return result;
}

static int copy_pages_back(struct rebuild_run *run, struct error *err)
{
	sqlite3_backup *backup =
		sqlite3_backup_init(run->from->handle, "main", run->to->handle, "main");
	if (backup == NULL)
		return db_fail(run->from, "copying what was rebuilt", err);
	/* SQLite reads each page before it writes over it */
	db_file_overlook(run->from->handle, true);
	int stepped = sqlite3_backup_step(backup, -1);
	db_file_overlook(run->from->handle, false);
	int finished = sqlite3_backup_finish(backup);
	return stepped == SQLITE_DONE && finished == SQLITE_OK
		? 0
		: db_fail(run->from, "copying what was rebuilt", err);
}
