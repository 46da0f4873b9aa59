/* Goes table by table, each in a snapshot of its own, so that the log can begin again in between.
 * The rows are counted and summed, and the result is compared with the row of `sums`. Then SQLite
 * checks whether each index has an entry for each row. An index with an unreadable page ends that
 * check with an error, so each index of the table is read by itself first. At last SQLite checks
 * the use of all pages. */
#include "storage/db/db_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/db/db_internal.h"

enum { STEPS_BETWEEN_QUESTIONS = 20000, SQL_BYTES = 1024, TEXT_BYTES = 240 };

struct check_run {
	struct db *db;
	const struct db_check *check;
	struct table_sums said;
	const char *table;
	bool has_finding_of_table; /* in the present table */
	bool has_finding;
};

static const char SQL_INDEXES[] =
	"SELECT l.name, coalesce(s.sql, '') FROM pragma_index_list(?1) l"
	" JOIN sqlite_schema s ON s.name = l.name WHERE s.rootpage > 0 ORDER BY l.name";
static const char SQL_STRUCTURE[] = "PRAGMA quick_check(1)";

static int db_check_keep_going(void *owner);
static int check_all(struct check_run *run, struct table_sums *tables, struct error *err);
static int check_table(struct check_run *run, const char *table, struct error *err);
static int check_rows(struct check_run *run, struct error *err);
static int tell_error(
	struct check_run *run, enum db_finding_kind kind, const char *index, struct error *err);
static void tell(
	struct check_run *run, enum db_finding_kind kind, const char *index, const char *detail);
static void compare(struct check_run *run, const struct table_sum *found);
static int check_indexes(struct check_run *run, struct error *err);
static int read_indexes(struct check_run *run, struct error *err);
static int read_index(
	struct check_run *run, const char *index, const char *condition, struct error *err);
static int run_sql(struct db *db, const char *sql, struct error *err);
static const char *condition_of(const char *sql);
static int ask_sqlite(struct check_run *run, const char *sql, struct error *err);
static int db_check_take_complaint(void *owner, int columns, char **values, char **names);
static void tell_complaint(struct check_run *run, const char *text);
static void tell_lost_tables(struct check_run *run, struct table_sums *tables);

int db_check(struct db *db, const struct db_check *check, struct error *err)
{
	ASSERT(check->found != NULL && check->goes_on != NULL && !db_in_transaction(db));
	struct check_run *run = memory_new(sizeof(*run));
	struct table_sums *tables = memory_new(sizeof(*tables));
	run->db = db;
	run->check = check;
	sqlite3_progress_handler(db->handle, STEPS_BETWEEN_QUESTIONS, db_check_keep_going, run);
	int result = check_all(run, tables, err);
	sqlite3_progress_handler(db->handle, 0, NULL, NULL);
	free(tables);
	free(run);
	return result;
}

static int db_check_keep_going(void *owner)
{
	const struct check_run *run = owner;
	return run->check->goes_on(run->check->owner) ? 0 : 1;
}

static int check_all(struct check_run *run, struct table_sums *tables, struct error *err)
{
	if (db_sums_list(run->db, tables, err) != 0)
		return -1;
	for (size_t i = 0; i < tables->count; i++)
		if (check_table(run, tables->names[i], err) != 0)
			return -1;
	tell_lost_tables(run, tables);
	run->table = "";
	/* it would be found once more; another check follows after the repair */
	if (run->has_finding)
		return 0;
	return ask_sqlite(run, SQL_STRUCTURE, err) == 0
		? 0
		: tell_error(run, DB_FINDING_STRUCTURE, NULL, err);
}

static int check_table(struct check_run *run, const char *table, struct error *err)
{
	run->table = table;
	run->has_finding_of_table = false;
	if (db_snapshot_begin(run->db, err) != 0)
		return -1;
	int result = check_rows(run, err);
	if (result == 0)
		result = check_indexes(run, err);
	db_snapshot_end(run->db);
	return result;
}

/* Runs in a snapshot: rows and sums are of the same moment. */
static int check_rows(struct check_run *run, struct error *err)
{
	struct table_sum found;
	if (db_sums_load(run->db, &run->said, err) != 0)
		return -1;
	if (db_sums_count(run->db, run->table, &found, err) != 0)
		return tell_error(run, DB_FINDING_TABLE, NULL, err);
	compare(run, &found);
	return 0;
}

/* Reports the error as a finding, or returns -1 when the check must end. */
static int tell_error(
	struct check_run *run, enum db_finding_kind kind, const char *index, struct error *err)
{
	if (!run->check->goes_on(run->check->owner))
		return error_set(err, ERROR_BUSY, "The check of the catalog was ended.");
	tell(run, kind, index, err->text);
	return 0;
}

static void tell(
	struct check_run *run, enum db_finding_kind kind, const char *index, const char *detail)
{
	run->has_finding_of_table = true;
	run->has_finding = true;
	const struct db_finding finding = {
		.kind = kind, .table = run->table, .index = index, .detail = detail};
	run->check->found(run->check->owner, &finding);
}

static void compare(struct check_run *run, const struct table_sum *found)
{
	char text[TEXT_BYTES];
	const struct table_sum *said = &run->said.tables[table_sums_place(&run->said, run->table)];
	if (said->rows == found->rows && said->sum == found->sum)
		return;
	if (said->rows != found->rows)
		snprintf(text, sizeof(text), "The table has %lld rows, and %lld were committed.",
			(long long)found->rows, (long long)said->rows);
	else
		snprintf(text, sizeof(text),
			"The rows of the table differ from what was committed last.");
	tell(run, DB_FINDING_TABLE, NULL, text);
}

static int check_indexes(struct check_run *run, struct error *err)
{
	char sql[SQL_BYTES];
	if (read_indexes(run, err) != 0)
		return -1;
	/* the findings are enough to act upon, and the next check might end there */
	if (run->has_finding_of_table)
		return 0;
	snprintf(sql, sizeof(sql), "PRAGMA integrity_check(\"%s\")", run->table);
	return ask_sqlite(run, sql, err) == 0 ? 0
					      : tell_error(run, DB_FINDING_STRUCTURE, NULL, err);
}

static int read_indexes(struct check_run *run, struct error *err)
{
	sqlite3_stmt *indexes = NULL;
	int result = 0;
	int got = sqlite3_prepare_v2(run->db->handle, SQL_INDEXES, -1, &indexes, NULL);
	if (got == SQLITE_OK)
		got = sqlite3_bind_text(indexes, 1, run->table, -1, SQLITE_STATIC);
	while (got == SQLITE_OK && result == 0 && sqlite3_step(indexes) == SQLITE_ROW)
		result = read_index(run, (const char *)sqlite3_column_text(indexes, 0),
			condition_of((const char *)sqlite3_column_text(indexes, 1)), err);
	if (got != SQLITE_OK)
		result = db_fail(run->db, "listing indexes", err);
	sqlite3_finalize(indexes);
	return result;
}

static int read_index(
	struct check_run *run, const char *index, const char *condition, struct error *err)
{
	char sql[SQL_BYTES];
	snprintf(sql, sizeof(sql), "SELECT count(*) FROM \"%s\" INDEXED BY \"%s\" WHERE %s",
		run->table, index, condition);
	return run_sql(run->db, sql, err) == 0 ? 0 : tell_error(run, DB_FINDING_INDEX, index, err);
}

static int run_sql(struct db *db, const char *sql, struct error *err)
{
	return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK ? 0
									    : db_fail(db, sql, err);
}

/* The words after an index's WHERE; "1" when it has none. */
static const char *condition_of(const char *sql)
{
	const char *found = strstr(sql, "WHERE ");
	return found == NULL ? "1" : found + strlen("WHERE ");
}

/* Reports what SQLite itself finds. It gives up where it cannot read on. */
static int ask_sqlite(struct check_run *run, const char *sql, struct error *err)
{
	return sqlite3_exec(run->db->handle, sql, db_check_take_complaint, run, NULL) == SQLITE_OK
		? 0
		: db_fail(run->db, "checking", err);
}

static int db_check_take_complaint(void *owner, int columns, char **values, char **names)
{
	(void)columns, (void)names;
	tell_complaint(owner, values[0] != NULL ? values[0] : "ok");
	return 0;
}

/* SQLite's messages are "row 7 missing from index NAME", "wrong # of entries in index NAME", and
 * others about pages. */
static void tell_complaint(struct check_run *run, const char *text)
{
	static const char mark[] = " index ";
	const char *index = strstr(text, mark);
	if (strcmp(text, "ok") == 0)
		return;
	if (index != NULL)
		tell(run, DB_FINDING_INDEX, index + strlen(mark), text);
	else
		tell(run, DB_FINDING_STRUCTURE, NULL, text);
}

static void tell_lost_tables(struct check_run *run, struct table_sums *tables)
{
	for (size_t i = 0; i < run->said.count; i++) {
		size_t known = tables->count;
		if (table_sums_place(tables, run->said.names[i]) < known)
			continue;
		tables->count = known;
		run->table = run->said.names[i];
		tell(run, DB_FINDING_TABLE, NULL, "The table is not in the schema any more.");
	}
}
