#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/db/db.h"

static char *folder;
static char path[512];
static struct db *db;

static const char SQL_INSERT[] = "INSERT INTO t (id, bytes) VALUES (?1, ?2)";
static const char SQL_COUNT[] = "SELECT COUNT(*) FROM t";
static const char SQL_GET[] = "SELECT bytes FROM t WHERE id = ?1";

static void set_up(void)
{
	struct error err = {0};
	folder = unit_scratch_make();
	snprintf(path, sizeof(path), "%s/test.db", folder);
	db = db_open(path, DB_WRITE, &err);
	ck_assert_msg(db != NULL, "%s", err.text);
	ck_assert_int_eq(
		db_run_script(
			db, "CREATE TABLE t (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL)", &err),
		0);
}

static void tear_down(void)
{
	db_close(db);
	unit_scratch_remove(folder);
}

static int insert(int64_t id, struct span bytes, struct error *err)
{
	return db_run(db, SQL_INSERT, err, db_i64(id), db_blob(bytes));
}

static int64_t count(struct db *in)
{
	struct error err = {0};
	int64_t rows = -1;
	ck_assert_msg(db_find_i64(in, SQL_COUNT, &rows, &err) == 1, "%s", err.text);
	return rows;
}

static int64_t pragma(struct db *in, const char *sql)
{
	struct error err = {0};
	int64_t value = -1;
	ck_assert_int_eq(db_find_i64(in, sql, &value, &err), 1);
	return value;
}

START_TEST(connections_are_durable_and_never_checkpoint_by_themselves)
{
	struct error err = {0};
	ck_assert_int_eq(pragma(db, "PRAGMA synchronous"), 2);
	ck_assert_int_eq(pragma(db, "PRAGMA foreign_keys"), 1);
	ck_assert_int_eq(pragma(db, "PRAGMA auto_vacuum"), 2);
	struct db_statement *const statement = db_query(db, "PRAGMA journal_mode", &err);
	ck_assert_int_eq(db_step(statement, &err), 1);
	ck_assert(span_equal_text(db_column_blob(statement, 0), "wal"));
	db_reset(statement);
	for (int i = 0; i < 3000; i++)
		ck_assert_int_eq(
			insert(i, span_text("some bytes that fill pages of the log"), &err), 0);
	/* more than SQLite's own threshold of 1000 pages */
	ck_assert_uint_gt(db_wal_bytes(db), 1001 * 4096);
	ck_assert_int_eq(db_checkpoint_passive(db, &err), 0);
	ck_assert_int_eq(db_checkpoint_restart(db, &err), 0);
	ck_assert_uint_eq(db_wal_bytes(db), 0);
	ck_assert_int_eq(insert(5000, span_text("x"), &err), 0);
	ck_assert_uint_lt(db_wal_bytes(db), 10 * 4096);
}
END_TEST

START_TEST(values_come_back_as_bound)
{
	struct error err = {0};
	int64_t id = 0;
	ck_assert_int_eq(insert(INT64_MIN, span_of("a\0b", 3), &err), 0);
	/* empty, not NULL */
	ck_assert_int_eq(
		db_insert(db, SQL_INSERT, &id, &err, db_i64(INT64_MAX), db_blob(span_of(NULL, 0))),
		0);
	struct db_statement *statement = db_query(db, SQL_GET, &err, db_i64(INT64_MIN));
	ck_assert_int_eq(db_step(statement, &err), 1);
	ck_assert(span_equal(db_column_blob(statement, 0), span_of("a\0b", 3)));
	db_reset(statement);
	statement = db_query(db, SQL_GET, &err); /* found again, nothing bound */
	ck_assert_int_eq(db_step(statement, &err), 0);
	statement = db_query(db, SQL_GET, &err, db_i64(INT64_MAX));
	ck_assert_int_eq(db_step(statement, &err), 1);
	ck_assert(!db_column_is_null(statement, 0));
	ck_assert_uint_eq(db_column_blob(statement, 0).len, 0);
	db_reset(statement);
	ck_assert_int_eq(id, INT64_MAX);
	ck_assert_int_eq(db_changes(db), 1);
}
END_TEST

/* The statement is the same each time, and keeps no value of the time before. */
START_TEST(values_that_are_not_given_are_null)
{
	static const char SQL_ECHO[] = "SELECT ?1, ?2";
	struct error err = {0};
	struct db_statement *row =
		db_query(db, SQL_ECHO, &err, db_null(), db_blob(span_of(NULL, 0)));
	ck_assert_int_eq(db_step(row, &err), 1);
	ck_assert(db_column_is_null(row, 0));
	ck_assert(!db_column_is_null(row, 1));
	ck_assert_uint_eq(db_column_blob(row, 1).len, 0);
	db_reset(row);
	row = db_query(db, SQL_ECHO, &err, db_i64(5));
	ck_assert_int_eq(db_step(row, &err), 1);
	ck_assert_int_eq(db_column_i64(row, 0), 5);
	ck_assert(db_column_is_null(row, 1));
	db_reset(row);
	row = db_query(db, SQL_ECHO, &err, db_i64_or_null(false, 5),
		db_blob_or_null(true, span_text("x")));
	ck_assert_int_eq(db_step(row, &err), 1);
	ck_assert(db_column_is_null(row, 0));
	ck_assert(span_equal_text(db_column_blob(row, 1), "x"));
	db_reset(row);
}
END_TEST

START_TEST(what_is_found_is_given_and_what_is_not_stays_as_it_was)
{
	static const char SQL_ADD[] = "INSERT INTO t (bytes) VALUES (?1)";
	static const char SQL_ID_OF[] = "SELECT id FROM t WHERE bytes = ?1";
	static const char SQL_SAME[] = "SELECT ?1";
	char text[] = "abc";
	int64_t id = 7;
	struct error err = {0};
	struct span copy = {NULL, 0};
	struct arena *const arena = arena_new(1000);
	ck_assert_int_eq(insert(41, span_text("x"), &err), 0);
	ck_assert_int_eq(db_find_i64(db, SQL_ID_OF, &id, &err, db_blob(span_text(text))), 0);
	ck_assert_int_eq(id, 7);
	ck_assert_int_eq(db_insert(db, SQL_ADD, &id, &err, db_blob(span_text(text))), 0);
	ck_assert_int_eq(id, 42);
	ck_assert_int_eq(db_find_i64(db, SQL_ID_OF, &id, &err, db_blob(span_text("x"))), 1);
	ck_assert_int_eq(id, 41);
	ck_assert_int_eq(
		db_find_blob(db, SQL_SAME, arena, &copy, &err, db_blob(span_text(text))), 1);
	text[0] = 'z'; /* the arena has a copy */
	ck_assert(span_equal_text(copy, "abc"));
	ck_assert_int_eq(db_find_blob(db, SQL_GET, arena, &copy, &err, db_i64(99)), 0);
	ck_assert(span_equal_text(copy, "abc"));
	arena_free(arena);
}
END_TEST

START_TEST(failures_have_their_kinds)
{
	struct error err = {0};
	ck_assert_int_eq(insert(1, span_text("x"), &err), 0);
	ck_assert_int_eq(insert(1, span_text("y"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
	ck_assert_int_eq(db_run(db, "INSERT INTO t (id, bytes) VALUES (2, NULL)", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_ptr_null(db_query(db, "SELECT nothing FROM nowhere", &err));
	ck_assert_int_eq(err.kind, ERROR_IO);
	ck_assert_int_eq(db_step(NULL, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_IO); /* as it was set */
	ck_assert_ptr_null(db_open("/nonexistent/folder/x.db", DB_WRITE, &err));
	ck_assert_int_eq(err.kind, ERROR_IO);
	ck_assert_int_eq(db_run_script(db, "PRAGMA max_page_count=8", &err), 0);
	int result = 0;
	for (int i = 10; result == 0 && i < 1000; i++)
		result = insert(i,
			span_text(
				"0123456789012345678901234567890123456789012345678901234567890123456789"),
			&err);
	ck_assert_int_eq(result, -1);
	ck_assert_int_eq(err.kind, ERROR_NO_SPACE);
}
END_TEST

START_TEST(a_file_of_another_kind_is_corrupt)
{
	struct error err = {0};
	char other[600];
	snprintf(other, sizeof(other), "%s/other.db", folder);
	FILE *const file = fopen(other, "w");
	for (int i = 0; i < 500; i++)
		fputs("this is no database\n", file);
	fclose(file);
	ck_assert_ptr_null(db_open(other, DB_WRITE, &err));
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
}
END_TEST

START_TEST(savepoints_roll_back_alone)
{
	struct error err = {0};
	ck_assert_int_eq(db_begin(db, &err), 0);
	ck_assert(db_in_transaction(db));
	ck_assert_int_eq(db_savepoint(db, &err), 0);
	ck_assert_int_eq(insert(1, span_text("x"), &err), 0);
	ck_assert_int_eq(db_savepoint_release(db, &err), 0);
	ck_assert_int_eq(db_savepoint(db, &err), 0);
	ck_assert_int_eq(insert(2, span_text("x"), &err), 0);
	db_savepoint_rollback(db);
	ck_assert_int_eq(db_commit(db, &err), 0);
	ck_assert(!db_in_transaction(db));
	ck_assert_int_eq(count(db), 1);
	ck_assert_int_eq(db_begin(db, &err), 0);
	ck_assert_int_eq(insert(3, span_text("x"), &err), 0);
	db_rollback(db);
	db_rollback(db);
	ck_assert_int_eq(count(db), 1);
}
END_TEST

START_TEST(a_snapshot_sees_one_state)
{
	struct error err = {0};
	struct db *const reader = db_open(path, DB_READ, &err);
	ck_assert_ptr_nonnull(reader);
	ck_assert_int_eq(db_snapshot_begin(reader, &err), 0);
	ck_assert_int_eq(count(reader), 0);
	ck_assert_int_eq(insert(1, span_text("x"), &err), 0);
	ck_assert_int_eq(count(reader), 0);
	/* the reader holds it up: not a failure */
	ck_assert_int_eq(db_checkpoint_restart(db, &err), 0);
	db_snapshot_end(reader);
	ck_assert_int_eq(count(reader), 1);
	ck_assert_int_eq(db_run_script(reader, "DELETE FROM t", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_READ_ONLY);
	db_close(reader);
}
END_TEST

START_TEST(a_reader_makes_no_file)
{
	struct error err = {0};
	char other[600];
	snprintf(other, sizeof(other), "%s/absent.db", folder);
	ck_assert_ptr_null(db_open(other, DB_READ, &err));
	ck_assert_int_eq(err.kind, ERROR_IO);
}
END_TEST

START_TEST(free_pages_are_given_back)
{
	struct error err = {0};
	for (int i = 0; i < 3000; i++)
		ck_assert_int_eq(
			insert(i, span_text("0123456789012345678901234567890123456789"), &err), 0);
	ck_assert_int_eq(db_run_script(db, "DELETE FROM t", &err), 0);
	const int64_t before = pragma(db, "PRAGMA freelist_count");
	ck_assert_int_gt(before, 20);
	ck_assert_int_eq(db_begin(db, &err), 0);
	ck_assert_int_eq(db_vacuum_some(db, 10, &err), 0);
	ck_assert_int_eq(db_commit(db, &err), 0);
	ck_assert_int_eq(pragma(db, "PRAGMA freelist_count"), before - 10);
}
END_TEST

static uint64_t salt_of_log(void)
{
	uint64_t salt = 0;
	char name[600];
	snprintf(name, sizeof name, "%s-wal", path);
	FILE *log = fopen(name, "rb");
	ck_assert_ptr_nonnull(log);
	ck_assert_int_eq(fseek(log, 16, SEEK_SET), 0);
	ck_assert_uint_eq(fread(&salt, sizeof salt, 1, log), 1);
	fclose(log);
	return salt;
}

START_TEST(salt_and_frames_are_those_of_the_own_last_commit)
{
	struct error err = {0};
	ck_assert_int_eq(insert(1, span_text("x"), &err), 0);
	uint64_t salt = db_log_salt(db);
	uint32_t frames = db_log_frames(db);
	ck_assert_uint_eq(salt, salt_of_log());
	ck_assert_uint_gt(frames, 0);
	struct db *other = db_open(path, DB_WRITE, &err);
	ck_assert_int_eq(db_vacuum_whole(other, &err), 0);
	ck_assert_int_eq(db_checkpoint_restart(other, &err), 0);
	ck_assert_int_eq(db_run_script(other, "DELETE FROM t", &err), 0); /* the log begins again */
	db_close(other);
	ck_assert_uint_ne(salt, salt_of_log());
	ck_assert_int_eq(db_begin(db, &err), 0);
	ck_assert_int_eq(db_commit(db, &err), 0); /* of nothing */
	ck_assert_uint_eq(db_log_salt(db), salt);
	ck_assert_uint_eq(db_log_frames(db), frames);
	ck_assert_int_eq(insert(2, span_text("x"), &err), 0);
	ck_assert_uint_eq(db_log_salt(db), salt_of_log());
	ck_assert_uint_eq(db_log_frames(db), db_wal_bytes(db) / 4120);
}
END_TEST

START_TEST(an_attached_file_is_not_the_database)
{
	struct error err = {0};
	char *attach;
	ck_assert_int_eq(insert(1, span_text("x"), &err), 0);
	uint64_t salt = db_log_salt(db);
	uint32_t frames = db_log_frames(db);
	ck_assert_int_gt(
		asprintf(&attach, "ATTACH '%s/other.db' AS other; PRAGMA other.journal_mode=WAL;",
			folder),
		0);
	ck_assert_int_eq(db_run_script(db, attach, &err), 0);
	free(attach);
	ck_assert_int_eq(
		db_run_script(db,
			"CREATE TABLE other.u (a); INSERT INTO u VALUES (zeroblob(100000))", &err),
		0);
	ck_assert_uint_eq(db_log_frames(db), frames);
	ck_assert_uint_eq(db_log_salt(db), salt);
	ck_assert_int_eq(db_run_script(db, "DETACH other", &err), 0);
}
END_TEST

Suite *test_db_suite(void);
Suite *test_db_suite(void)
{
	Suite *const suite = suite_create("db");
	TCase *const tests = tcase_create("db");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, connections_are_durable_and_never_checkpoint_by_themselves);
	tcase_add_test(tests, values_come_back_as_bound);
	tcase_add_test(tests, values_that_are_not_given_are_null);
	tcase_add_test(tests, what_is_found_is_given_and_what_is_not_stays_as_it_was);
	tcase_add_test(tests, failures_have_their_kinds);
	tcase_add_test(tests, a_file_of_another_kind_is_corrupt);
	tcase_add_test(tests, savepoints_roll_back_alone);
	tcase_add_test(tests, a_snapshot_sees_one_state);
	tcase_add_test(tests, a_reader_makes_no_file);
	tcase_add_test(tests, free_pages_are_given_back);
	tcase_add_test(tests, salt_and_frames_are_those_of_the_own_last_commit);
	tcase_add_test(tests, an_attached_file_is_not_the_database);
	suite_add_tcase(suite, tests);
	return suite;
}
