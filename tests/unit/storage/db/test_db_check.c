/* The findings of a check of a whole database, and how an index comes back. SQLite itself makes the
 * damage, behind the connection that keeps the sums, like a page that the disk did not write. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/db/db_check.h"
#include "storage/db/db_internal.h"
#include "storage/db/db_rebuild.h"
#include "storage/db/page_sum.h"
#include "storage/db/table_sums.h"

enum { ROWS = 300 };

static char *folder;
static char path[512];
static struct db *db;

struct findings {
	size_t count[3];
	char table[64];
	char index[64];
	char detail[400];
	bool stops;
};

static const char SQL_ADD[] = "INSERT INTO t (id, name, state) VALUES (?1, ?2, ?3)";

static void run(const char *sql)
{
	struct error err = {0};
	ck_assert_msg(db_run_script(db, sql, &err) == 0, "%s: %s", sql, err.text);
}

static void change(const char *sql)
{
	struct error err = {0};
	ck_assert_msg(db_begin(db, &err) == 0, "%s", err.text);
	run(sql);
	ck_assert_msg(db_commit(db, &err) == 0, "%s", err.text);
}

/* Runs on another connection, which keeps no sums. */
static void meddle(const char *sql)
{
	struct error err = {0};
	struct db *other = db_open(path, DB_WRITE, &err);
	ck_assert_msg(db_run_script(other, sql, &err) == 0, "%s: %s", sql, err.text);
	db_close(other);
}

static int64_t count(const char *sql)
{
	struct error err = {0};
	int64_t number = -1;
	ck_assert_msg(db_read_number(db, sql, &number, &err) == 0, "%s", err.text);
	return number;
}

static void open_it(void)
{
	struct error err = {0};
	db = db_open(path, DB_WRITE, &err);
	ck_assert_msg(db != NULL, "%s", err.text);
	ck_assert_msg(db_keep_sums(db, &err) == 0, "%s", err.text);
}

static void set_up(void)
{
	struct error err = {0};
	folder = unit_scratch_make();
	snprintf(path, sizeof path, "%s/test.db", folder);
	db = db_open(path, DB_WRITE, &err);
	run("CREATE TABLE sums (one INTEGER PRIMARY KEY, change INTEGER NOT NULL, tables BLOB NOT NULL);"
	    "CREATE TABLE t (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, state INTEGER NOT NULL);"
	    "CREATE TABLE pairs (a BLOB, b INTEGER, c BLOB, PRIMARY KEY (a, b)) WITHOUT ROWID;"
	    "CREATE TABLE blobs (id INTEGER PRIMARY KEY, bytes BLOB);"
	    "CREATE TABLE numbered (id INTEGER PRIMARY KEY AUTOINCREMENT, x INTEGER);"
	    "CREATE TABLE parents (id INTEGER PRIMARY KEY);"
	    "CREATE TABLE children (id INTEGER PRIMARY KEY,"
	    " parent INTEGER NOT NULL REFERENCES parents (id));"
	    "CREATE INDEX children_of ON children (parent);"
	    "CREATE UNIQUE INDEX t_current ON t (name) WHERE state = 1;"
	    "CREATE INDEX t_state ON t (state, name);");
	ck_assert_msg(db_keep_sums(db, &err) == 0, "%s", err.text);
	ck_assert_int_eq(db_begin(db, &err), 0);
	for (int i = 0; i < ROWS; i++) {
		char name[120];
		snprintf(name, sizeof name, "%0100d", i);
		ck_assert_int_eq(db_run(db, SQL_ADD, &err, db_i64(i), db_blob(span_text(name)),
					 db_i64(i % 3)),
			0);
	}
	ck_assert_int_eq(db_commit(db, &err), 0);
	change("INSERT INTO pairs VALUES (x'01', 1, NULL), (x'01', 2, x''), (x'02', 1, zeroblob(9000))");
}

static void tear_down(void)
{
	db_close(db);
	unit_scratch_remove(folder);
}

static void take_finding(void *owner, const struct db_finding *finding)
{
	struct findings *findings = owner;
	findings->count[finding->kind]++;
	snprintf(findings->table, sizeof findings->table, "%s", finding->table);
	snprintf(findings->index, sizeof findings->index, "%s",
		finding->index != NULL ? finding->index : "");
	snprintf(findings->detail, sizeof findings->detail, "%s", finding->detail);
}

static bool goes_on(void *owner)
{
	return !((struct findings *)owner)->stops;
}

static struct findings look(void)
{
	struct error err = {0};
	struct findings findings = {0};
	const struct db_check check = {
		.found = take_finding, .goes_on = goes_on, .owner = &findings};
	struct db *reader = db_open(path, DB_READ, &err);
	ck_assert_msg(db_check(reader, &check, &err) == 0, "%s", err.text);
	db_close(reader);
	return findings;
}

static void expect_sound(void)
{
	struct findings findings = look();
	ck_assert_msg(findings.count[0] + findings.count[1] + findings.count[2] == 0, "%s %s: %s",
		findings.table, findings.index, findings.detail);
}

START_TEST(all_kinds_of_changes_keep_the_sums)
{
	struct error err = {0};
	expect_sound();
	change("UPDATE t SET state = state + 1 WHERE id < 50; DELETE FROM t WHERE id % 7 = 0;"
	       "INSERT INTO t VALUES (1000, x'00', 5); REPLACE INTO t VALUES (1000, x'01', 6);"
	       "REPLACE INTO t VALUES (1001, x'01', 7); UPDATE t SET id = 2000 WHERE id = 1001;"
	       "INSERT INTO t VALUES (3000, x'01', 1) ON CONFLICT (name) DO UPDATE SET state = 9;"
	       "UPDATE pairs SET b = 7 WHERE b = 2; DELETE FROM pairs WHERE a = x'02'");
	expect_sound();
	change("DELETE FROM t");
	expect_sound();
	ck_assert_int_eq(db_begin(db, &err), 0);
	run("INSERT INTO t VALUES (1, x'05', 1)");
	db_rollback(db);
	expect_sound();
	int64_t before = db_change(db);
	ck_assert_int_eq(db_begin(db, &err), 0);
	ck_assert_int_eq(db_commit(db, &err), 0);
	ck_assert_int_eq(db_change(db), before); /* nothing was changed */
	change("INSERT INTO t VALUES (1, x'05', 1)");
	ck_assert_int_eq(db_change(db), before + 1);
	db_close(db);
	open_it();
	ck_assert_int_eq(db_begin(db, &err), 0);
	ck_assert_int_eq(db_change(db), before + 1);
	ck_assert_int_eq(db_commit(db, &err), 0);
	expect_sound();
}
END_TEST

START_TEST(what_is_taken_back_counts_for_nothing)
{
	static const char SQL_TWO[] =
		"INSERT INTO t SELECT 500 + id, name || x'00', 1 FROM t WHERE id < 2"
		" UNION ALL SELECT 600, name, 1 FROM t WHERE id = 5";
	struct error err = {0};
	ck_assert_int_eq(db_begin(db, &err), 0);
	run("INSERT INTO t VALUES (900, x'09', 1)");
	ck_assert_int_eq(db_savepoint(db, &err), 0);
	run("INSERT INTO t VALUES (901, x'0a', 1); DELETE FROM t WHERE id = 3");
	db_savepoint_rollback(db);
	ck_assert_int_eq(db_savepoint(db, &err), 0);
	/* The third row breaks a rule when two rows are already in. */
	ck_assert_int_eq(db_run(db, SQL_TWO, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
	run("DELETE FROM t WHERE id = 4");
	ck_assert_int_eq(db_savepoint_release(db, &err), 0);
	ck_assert_int_eq(db_commit(db, &err), 0);
	expect_sound();
}
END_TEST

START_TEST(rows_that_are_not_as_committed_are_found)
{
	static const char *const scripts[] = {"DELETE FROM t WHERE id = 17",
		"UPDATE t SET state = 8 WHERE id = 17", "INSERT INTO t VALUES (999, x'07', 0)",
		"UPDATE pairs SET c = x'00' WHERE b = 2"};
	expect_sound();
	meddle(scripts[_i]);
	struct findings findings = look();
	ck_assert_uint_eq(findings.count[DB_FINDING_TABLE], 1);
	ck_assert_uint_eq(
		findings.count[DB_FINDING_INDEX] + findings.count[DB_FINDING_STRUCTURE], 0);
	ck_assert_str_eq(findings.table, _i == 3 ? "pairs" : "t");
}
END_TEST

START_TEST(a_table_that_is_gone_is_found)
{
	meddle("DROP TABLE pairs");
	struct findings findings = look();
	ck_assert_uint_eq(findings.count[DB_FINDING_TABLE], 2); /* the table and the schema */
	ck_assert_str_eq(findings.table, "pairs");
}
END_TEST

/* Makes an index that lacks entries, while SQLite believes that it has them. */
static void cut_index(const char *name, const char *full, const char *partial)
{
	sqlite3 *handle;
	char *sql = sqlite3_mprintf(
		"DROP INDEX IF EXISTS %s; %s; PRAGMA writable_schema=ON;"
		" UPDATE sqlite_schema SET sql = %Q WHERE name = %Q; PRAGMA writable_schema=RESET;",
		name, partial, full, name);
	db_close(db);
	ck_assert_int_eq(sqlite3_open(path, &handle), SQLITE_OK);
	ck_assert_msg(sqlite3_exec(handle, sql, NULL, NULL, NULL) == SQLITE_OK, "%s",
		sqlite3_errmsg(handle));
	sqlite3_close(handle);
	sqlite3_free(sql);
}

/* SQLite without this layer has left pages without checksums. Turns them into valid pages. */
static void sum_pages(void)
{
	uint8_t page[4096];
	int fd = open(path, O_RDWR);
	for (off_t at = 0; pread(fd, page, sizeof page, at) == sizeof page;
		at += (off_t)sizeof page) {
		page_sum_put(page, (uint32_t)(at / (off_t)sizeof page) + 1);
		ck_assert_int_eq(pwrite(fd, page, sizeof page, at), sizeof page);
	}
	close(fd);
}

static int rebuild(const char *settle, struct error *err)
{
	char scratch[600];
	snprintf(scratch, sizeof scratch, "%s.rebuilt", path);
	static const char *const tables[] = {"t", NULL};
	const struct db_rebuild how = {.scratch = scratch,
		.settle_tables = settle != NULL ? tables : NULL,
		.settle_sql = settle};
	int result = db_rebuild(db, &how, err);
	ck_assert(access(scratch, F_OK) != 0);
	return result;
}

START_TEST(an_index_that_lacks_entries_is_found_and_rebuilt)
{
	struct error err = {0};
	cut_index("t_state", "CREATE INDEX t_state ON t (state, name)",
		"CREATE INDEX t_state ON t (state, name) WHERE id <> 9");
	sum_pages();
	open_it();
	struct findings findings = look();
	ck_assert_uint_ge(findings.count[DB_FINDING_INDEX], 1);
	ck_assert_uint_eq(findings.count[DB_FINDING_TABLE], 0);
	ck_assert_str_eq(findings.index, "t_state");
	ck_assert_msg(rebuild(NULL, &err) == 0, "%s", err.text);
	expect_sound();
	change("DELETE FROM t WHERE id = 9");
	expect_sound();
}
END_TEST

/* The number of the page where the index begins. */
static uint32_t root_of(const char *name)
{
	sqlite3 *handle;
	sqlite3_stmt *statement;
	sqlite3_open(path, &handle);
	sqlite3_prepare_v2(
		handle, "SELECT rootpage FROM sqlite_schema WHERE name = ?1", -1, &statement, NULL);
	sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
	ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
	uint32_t root = (uint32_t)sqlite3_column_int(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_close(handle);
	return root;
}

static void spoil_page(uint32_t number)
{
	static const uint8_t junk[16] = {0x5a, 0xa5, 0x5a, 0xa5};
	int fd = open(path, O_RDWR);
	ck_assert_int_eq(
		pwrite(fd, junk, sizeof junk, (off_t)(number - 1) * 4096 + 1000), sizeof junk);
	close(fd);
}

START_TEST(an_index_that_cannot_be_read_is_found_and_rebuilt)
{
	static const char *const names[] = {"t_state", "t_current", "sqlite_autoindex_t_1"};
	static const char SQL_FIND[] = "SELECT id FROM t WHERE name = ?1";
	struct error err = {0};
	uint32_t root = root_of(names[_i]);
	db_close(db);
	spoil_page(root);
	open_it();
	struct findings findings = look();
	ck_assert_uint_ge(findings.count[DB_FINDING_INDEX], 1);
	ck_assert_uint_eq(findings.count[DB_FINDING_TABLE], 0);
	ck_assert_str_eq(findings.index, names[_i]);
	struct db *reader = db_open(path, DB_READ, &err);
	ck_assert_int_eq(db_snapshot_begin(reader, &err), 0);
	ck_assert_int_eq(
		db_step(db_query(reader, "SELECT count(*) FROM t NOT INDEXED", &err), &err), 1);
	ck_assert_msg(rebuild(NULL, &err) == 0, "%s", err.text);
	db_close(reader);
	ck_assert_int_eq(db_checkpoint_truncate(db, &err), 0);
	expect_sound();
	int64_t id = -1;
	char name[120];
	snprintf(name, sizeof name, "%0100d", 77);
	ck_assert_int_eq(db_find_i64(db, SQL_FIND, &id, &err, db_blob(span_text(name))), 1);
	ck_assert_int_eq(id, 77);
	ck_assert_int_eq(
		db_run_script(db, "INSERT INTO t SELECT 5000, name, 0 FROM t WHERE id = 77", &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
}
END_TEST

/* Two rows where a partial unique index allows one: the older one gives way. */
START_TEST(what_breaks_a_rule_is_settled)
{
	static const char settle[] =
		"UPDATE t SET state = 0 WHERE state = 1 AND EXISTS"
		" (SELECT 1 FROM t n WHERE n.state = 1 AND n.id = t.id + 7000)";
	struct error err = {0};
	int64_t before = db_change(db);
	cut_index("t_current", "CREATE UNIQUE INDEX t_current ON t (id % 7000) WHERE state = 1",
		"INSERT INTO t SELECT 7004, x'00', 1;"
		" CREATE INDEX t_current ON t (name) WHERE state = 17");
	sum_pages();
	open_it();
	ck_assert_int_eq(rebuild(NULL, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
	ck_assert_msg(rebuild(settle, &err) == 0, "%s", err.text);
	struct findings findings = look();
	ck_assert_uint_eq(
		findings.count[DB_FINDING_INDEX] + findings.count[DB_FINDING_STRUCTURE], 0);
	/* the row that was inserted behind the sums, and the schema */
	ck_assert_uint_eq(findings.count[DB_FINDING_TABLE], 2);
	int64_t states = -1;
	ck_assert_int_eq(
		db_find_i64(db, "SELECT sum(state) FROM t WHERE id IN (4, 7004)", &states, &err),
		1);
	ck_assert_int_eq(states, 1);
	change("UPDATE t SET state = 3 WHERE id = 1");
	ck_assert_int_eq(db_change(db), before + 1);
}
END_TEST

/* Rows that name rows of another table: those of `children` are copied before those of `parents`,
 * and some name a row that the disk lost. */
START_TEST(rows_that_name_others_come_through_a_rebuild)
{
	struct error err = {0};
	change("INSERT INTO parents VALUES (1), (2);"
	       " INSERT INTO children VALUES (10, 1), (20, 2), (21, 2)");
	ck_assert_msg(rebuild(NULL, &err) == 0, "%s", err.text);
	expect_sound();
	if (_i == 1)
		meddle("PRAGMA foreign_keys=OFF; DELETE FROM parents WHERE id = 2");
	ck_assert_msg(rebuild(NULL, &err) == 0, "%s", err.text);
	ck_assert_int_eq(count("SELECT count(*) FROM children INDEXED BY children_of"), 3);
	ck_assert_int_eq(count("SELECT count(*) FROM parents"), _i == 1 ? 1 : 2);
	struct findings findings = look();
	ck_assert_uint_eq(findings.count[DB_FINDING_TABLE], _i);
	ck_assert_str_eq(findings.table, _i == 1 ? "parents" : "");
	/* The rule is in force again. */
	ck_assert_int_eq(db_run_script(db, "INSERT INTO children VALUES (30, 3)", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

/* Whether some rows are left, or none. */
START_TEST(numbers_of_rows_that_are_gone_are_not_given_again)
{
	struct error err = {0};
	change(_i == 0 ? "INSERT INTO numbered (x) VALUES (1), (2), (3); DELETE FROM numbered WHERE id > 1"
		       : "INSERT INTO numbered (x) VALUES (1), (2), (3); DELETE FROM numbered");
	ck_assert_msg(rebuild(NULL, &err) == 0, "%s", err.text);
	change("INSERT INTO numbered (x) VALUES (4)");
	ck_assert_int_eq(count("SELECT max(id) FROM numbered"), 4);
	ck_assert_int_eq(count("SELECT count(*) FROM sqlite_sequence"), 1);
	expect_sound();
}
END_TEST

START_TEST(a_rebuild_keeps_all_that_the_schema_says)
{
	struct error err = {0};
	int version, application;
	ck_assert_int_eq(db_set_version(db, 17, 4711, &err), 0);
	run("CREATE TEMP TABLE before AS SELECT type, name, tbl_name, sql FROM main.sqlite_schema");
	const int64_t parts = count("SELECT count(*) FROM main.sqlite_schema");
	ck_assert_msg(rebuild(NULL, &err) == 0, "%s", err.text);
	ck_assert_int_eq(count("SELECT count(*) AS n FROM main.sqlite_schema"), parts);
	ck_assert_int_eq(
		count("SELECT count(*) FROM (SELECT type, name, tbl_name, sql FROM main.sqlite_schema EXCEPT SELECT * FROM before)"),
		0);
	ck_assert_int_eq(db_get_version(db, &version, &application, &err), 0);
	ck_assert_int_eq(version, 17);
	ck_assert_int_eq(application, 4711);
	expect_sound();
}
END_TEST

START_TEST(a_rebuild_that_fails_leaves_rules_in_force)
{
	struct error err = {0};
	uint32_t root = root_of("t");
	db_close(db);
	spoil_page(root);
	open_it();
	ck_assert_int_eq(rebuild(NULL, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
	ck_assert_int_eq(db_run_script(db, "INSERT INTO children VALUES (30, 3)", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

START_TEST(a_table_that_cannot_be_read_is_found_and_stays_as_it_is)
{
	struct error err = {0};
	uint32_t root = root_of("pairs");
	db_close(db);
	spoil_page(root);
	open_it();
	struct findings findings = look();
	ck_assert_uint_eq(findings.count[DB_FINDING_TABLE], 1);
	ck_assert_msg(strstr(findings.detail, "does not match its checksum") != NULL, "%s",
		findings.detail);
	ck_assert_int_eq(rebuild(NULL, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
	change("UPDATE t SET state = 3 WHERE id = 1");
}
END_TEST

/* The page in the middle of a value that is longer than a page; it contains only zeros. */
static uint32_t zero_page_of(const char *file)
{
	static const uint8_t zeros[4000];
	uint8_t page[4096];
	int fd = open(file, O_RDONLY);
	uint32_t number = 1;
	while (pread(fd, page, sizeof page, (off_t)(number - 1) * 4096) == (ssize_t)sizeof page &&
		memcmp(page + 4, zeros, sizeof zeros) != 0)
		number++;
	close(fd);
	return number;
}

/* The last statements do not look at the long value themselves, but the sums do. */
static const char *const overflow_changes[] = {"UPDATE pairs SET b = 9 WHERE a = x'02'",
	"DELETE FROM pairs WHERE a = x'02'", "DELETE FROM blobs WHERE id = 1",
	"UPDATE blobs SET bytes = NULL WHERE id = 1"};

static void take_record(void *owner, const struct db_record *record)
{
	(void)record;
	++*(int *)owner;
}

static void ignore_outcome(void *owner, enum db_outcome outcome)
{
	(void)owner, (void)outcome;
}

static void ignore_loss(void *owner)
{
	(void)owner;
}

START_TEST(a_row_that_cannot_be_read_is_not_changed)
{
	struct error err = {0};
	int records = 0;
	const struct db_recorder recorder = {.owner = &records,
		.take = take_record,
		.settle = ignore_outcome,
		.lose = ignore_loss};
	bool of_pairs = strstr(overflow_changes[_i], "pairs") != NULL;
	if (!of_pairs)
		change("DELETE FROM pairs; INSERT INTO blobs VALUES (1, zeroblob(9000))");
	db_close(db);
	spoil_page(zero_page_of(path));
	open_it();
	ck_assert_int_eq(db_set_recorder(db, &recorder, &err), 0);
	ck_assert_int_eq(db_begin(db, &err), 0);
	ck_assert_int_eq(db_run(db, overflow_changes[_i], &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
	ck_assert_ptr_nonnull(strstr(err.text, "does not match its checksum"));
	db_rollback(db);
	ck_assert_int_eq(records, 0);
	change("INSERT INTO t VALUES (5000, x'09', 1)"); /* others go on */
	ck_assert_int_eq(records, 1);
	struct findings findings = look();
	ck_assert_uint_eq(findings.count[DB_FINDING_TABLE], 1);
	ck_assert_str_eq(findings.table, of_pairs ? "pairs" : "blobs");
}
END_TEST

START_TEST(a_check_can_be_ended)
{
	struct error err = {0};
	struct findings findings = {.stops = true};
	const struct db_check check = {
		.found = take_finding, .goes_on = goes_on, .owner = &findings};
	struct db *reader = db_open(path, DB_READ, &err);
	meddle("WITH RECURSIVE n (i) AS (SELECT 9000 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)"
	       " INSERT INTO t SELECT i, i, 0 FROM n");
	ck_assert_int_eq(db_check(reader, &check, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	db_close(reader);
}
END_TEST

START_TEST(sums_come_back_as_they_were_written)
{
	struct table_sums sums = {0};
	struct table_sums back;
	struct error err = {0};
	struct buffer bytes;
	buffer_init(&bytes, TABLE_SUMS_MAX_BYTES);
	sums.tables[table_sums_place(&sums, "one")] = (struct table_sum){7, 1234567890123};
	sums.tables[table_sums_place(&sums, "two")] = (struct table_sum){-1, UINT64_MAX};
	table_sums_encode(&sums, &bytes);
	ck_assert_int_eq(table_sums_decode(buffer_span(&bytes), &back, &err), 0);
	ck_assert_uint_eq(back.count, 2);
	ck_assert_int_eq(back.tables[table_sums_place(&back, "two")].rows, -1);
	ck_assert(back.tables[table_sums_place(&back, "one")].sum == 1234567890123);
	for (size_t i = 0; i < bytes.len; i++) {
		bytes.data[i] ^= 4;
		ck_assert_int_eq(table_sums_decode(buffer_span(&bytes), &back, &err), -1);
		bytes.data[i] ^= 4;
		ck_assert_int_eq(table_sums_decode(span_of(bytes.data, i), &back, &err), -1);
	}
	buffer_release(&bytes);
}
END_TEST

Suite *test_db_check_suite(void);
Suite *test_db_check_suite(void)
{
	Suite *suite = suite_create("db_check");
	TCase *tests = tcase_create("check");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, all_kinds_of_changes_keep_the_sums);
	tcase_add_test(tests, what_is_taken_back_counts_for_nothing);
	tcase_add_loop_test(tests, rows_that_are_not_as_committed_are_found, 0, 4);
	tcase_add_test(tests, a_table_that_is_gone_is_found);
	tcase_add_test(tests, an_index_that_lacks_entries_is_found_and_rebuilt);
	tcase_add_loop_test(tests, an_index_that_cannot_be_read_is_found_and_rebuilt, 0, 3);
	tcase_add_test(tests, what_breaks_a_rule_is_settled);
	tcase_add_loop_test(tests, rows_that_name_others_come_through_a_rebuild, 0, 2);
	tcase_add_loop_test(tests, numbers_of_rows_that_are_gone_are_not_given_again, 0, 2);
	tcase_add_test(tests, a_rebuild_keeps_all_that_the_schema_says);
	tcase_add_test(tests, a_rebuild_that_fails_leaves_rules_in_force);
	tcase_add_test(tests, a_table_that_cannot_be_read_is_found_and_stays_as_it_is);
	tcase_add_loop_test(tests, a_row_that_cannot_be_read_is_not_changed, 0, 4);
	tcase_add_test(tests, a_check_can_be_ended);
	suite_add_tcase(suite, tests);
	TCase *sums = tcase_create("sums");
	tcase_add_test(sums, sums_come_back_as_they_were_written);
	suite_add_tcase(suite, sums);
	return suite;
}
