#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "storage/buckets/bucket_access.h"
#include "storage/buckets/key_row.h"
#include "storage/start/catalog.h"
#include "storage/start/migration_list.h"

static char *folder;
static char path[512];

static void set_up(void)
{
	folder = unit_scratch_make();
	snprintf(path, sizeof(path), "%s/catalog.db", folder);
}

static void tear_down(void)
{
	unit_scratch_remove(folder);
}

START_TEST(a_new_catalog_is_stamped_and_opens_again)
{
	for (int i = 0; i < 2; i++) {
		struct error err = {0};
		int version = 0;
		int application = 0;
		struct db *const db = catalog_open(path, &err);
		ck_assert_msg(db != NULL, "%s", err.text);
		ck_assert_int_eq(db_get_version(db, &version, &application, &err), 0);
		ck_assert_int_eq(version, migration_list[migration_count - 1].number);
		ck_assert_int_eq(application, CATALOG_APPLICATION);
		db_close(db);
	}
}
END_TEST

START_TEST(migrations_are_numbered_without_gaps)
{
	for (size_t i = 0; i < migration_count; i++) {
		char number[32];
		ck_assert_int_eq(migration_list[i].number, (int)i + 1);
		snprintf(number, sizeof(number), "%04zu_", i + 1);
		ck_assert(strncmp(migration_list[i].name, number, 5) == 0);
	}
}
END_TEST

static void stamp(int version, int application)
{
	struct error err = {0};
	struct db *const db = db_open(path, DB_WRITE, &err);
	ck_assert_int_eq(db_set_version(db, version, application, &err), 0);
	db_close(db);
}

START_TEST(a_newer_schema_is_refused)
{
	struct error err = {0};
	db_close(catalog_open(path, &err));
	stamp(migration_list[migration_count - 1].number + 1, CATALOG_APPLICATION);
	ck_assert_ptr_null(catalog_open(path, &err));
	ck_assert_int_eq(err.kind, ERROR_UNSUPPORTED);
}
END_TEST

START_TEST(a_database_of_others_is_refused)
{
	struct error err = {0};
	stamp(0, 12345);
	ck_assert_ptr_null(catalog_open(path, &err));
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	stamp(3, 0);
	ck_assert_ptr_null(catalog_open(path, &err));
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
}
END_TEST

START_TEST(a_migration_that_fails_leaves_the_file_as_it_was)
{
	struct error err = {0};
	int version = 9;
	int application = 9;
	struct db *db = db_open(path, DB_WRITE, &err);
	/* a migration cannot make this table, which is one of its last */
	ck_assert_int_eq(db_run_script(db, "CREATE TABLE step_objects (x INTEGER)", &err), 0);
	db_close(db);
	ck_assert_ptr_null(catalog_open(path, &err));
	db = db_open(path, DB_WRITE, &err);
	ck_assert_int_eq(db_get_version(db, &version, &application, &err), 0);
	ck_assert_int_eq(version, 0);
	ck_assert_int_eq(application, 0);
	ck_assert_ptr_null(db_query(db, "SELECT * FROM buckets", &err));
	db_close(db);
}
END_TEST

/* A catalog of the schema before the last, with these rows. */
static void make_old(const char *rows)
{
	struct error err = {0};
	struct db *const db = db_open(path, DB_WRITE, &err);
	for (size_t i = 0; i < 4; i++)
		ck_assert_msg(db_run_script(db, migration_list[i].sql, &err) == 0, "%s", err.text);
	ck_assert_int_eq(db_set_version(db, 4, CATALOG_APPLICATION, &err), 0);
	ck_assert_msg(db_run_script(db, rows, &err) == 0, "%s", err.text);
	db_close(db);
}

static const char OLD_BUCKETS[] =
	"INSERT INTO accounts (id, namespace, created_ms) VALUES (1, x'6d61696e', 5);"
	"INSERT INTO buckets (id, name, account, created_ms) VALUES (1, x'61', 1, 5), (2, x'62', 1, 5), (3, x'63', 1, 5);"
	"INSERT INTO bucket_grants (bucket, source, ordinal, account, prefix, permissions) VALUES (1, 1, 0, x'', x'', 1), (3, 2, 0, x'66', x'', 1);"
	"INSERT INTO bucket_documents (bucket, kind, document) VALUES (3, 5, x'0f')";

START_TEST(what_old_buckets_allow_is_believed)
{
	struct error err = {0};
	bool is_right = false;
	make_old(OLD_BUCKETS);
	struct db *const db = catalog_open(path, &err);
	ck_assert_msg(db != NULL, "%s", err.text);
	for (int64_t bucket = 1; bucket <= 3; bucket++) {
		ck_assert_int_eq(bucket_access_is_right(db, bucket, &is_right, &err), 0);
		ck_assert_msg(is_right, "bucket %lld", (long long)bucket);
	}
	db_close(db);
}
END_TEST

static const char OLD_KEYS[] =
	"INSERT INTO accounts (id, namespace, created_ms) VALUES (1, x'6d61696e', 5);"
	"INSERT INTO keys (id, key_id, account, name, sealed_secret, token_hash, is_root, created_ms) VALUES"
	" (1, CAST('ROOT' AS BLOB), 1, x'61', x'0102', zeroblob(32), 1, 5), (2, CAST('OTHER' AS BLOB), 1, x'62', x'0103', zeroblob(32), 0, 6);"
	"INSERT INTO grants (key, ordinal, bucket, prefix, permissions) VALUES (2, 0, x'61', x'', 1), (2, 1, x'62', x'', 3)";

START_TEST(old_keys_are_sound)
{
	struct error err = {0};
	struct key_record key;
	int64_t row = 0;
	make_old(OLD_KEYS);
	struct db *const db = catalog_open(path, &err);
	ck_assert_msg(db != NULL, "%s", err.text);
	struct arena *const arena = arena_new(64 * 1024);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_int_eq(key_row_next(db, row, arena, &key, &row, &err), 1);
		ck_assert_msg(!key.is_damaged && key.grant_count == 2 * i, "key %zu", i);
	}
	arena_free(arena);
	db_close(db);
}
END_TEST

static int count_asked(void *owner, struct db *db, int version, struct error *err)
{
	(void)db;
	*(int *)owner = 10 + version;
	return version == 4 ? error_set(err, ERROR_BUSY, "not now") : 0;
}

START_TEST(the_gate_is_asked_only_before_the_schema_changes)
{
	struct error err = {0};
	int asked = 0;
	const struct catalog_gate gate = {count_asked, &asked};
	db_close(catalog_open_asking(path, &gate, &err));
	ck_assert_int_eq(asked, 10);
	asked = 0;
	db_close(catalog_open_asking(path, &gate, &err));
	ck_assert_int_eq(asked, 0);
}
END_TEST

START_TEST(a_refusal_leaves_the_old_schema)
{
	struct error err = {0};
	int version = 0;
	int application = 0;
	int asked = 0;
	const struct catalog_gate gate = {count_asked, &asked};
	make_old("SELECT 1");
	ck_assert_ptr_null(catalog_open_asking(path, &gate, &err));
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	struct db *const db = db_open(path, DB_WRITE, &err);
	ck_assert_int_eq(db_get_version(db, &version, &application, &err), 0);
	ck_assert_int_eq(version, 4);
	db_close(db);
}
END_TEST

static int64_t log_bytes(void)
{
	char log[600];
	struct stat found;
	snprintf(log, sizeof log, "%s-wal", path);
	return stat(log, &found) == 0 ? (int64_t)found.st_size : 0;
}

/* A refused file may belong to another program: neither the file nor its log is touched. */
START_TEST(the_log_of_a_catalog_that_is_refused_stays)
{
	struct error err = {0};
	db_close(catalog_open(path, &err));
	ck_assert_int_eq(log_bytes(), 0);
	struct db *const db = db_open(path, DB_WRITE, &err);
	db_keep_log(db, true);
	ck_assert_int_eq(db_set_version(db, 999, CATALOG_APPLICATION, &err), 0);
	db_close(db);
	const int64_t before = log_bytes();
	ck_assert_int_gt(before, 0);
	ck_assert_ptr_null(catalog_open(path, &err));
	ck_assert_int_eq(err.kind, ERROR_UNSUPPORTED);
	ck_assert_int_eq(log_bytes(), before);
}
END_TEST

Suite *test_catalog_suite(void);
Suite *test_catalog_suite(void)
{
	Suite *const suite = suite_create("catalog");
	TCase *const tests = tcase_create("catalog");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_new_catalog_is_stamped_and_opens_again);
	tcase_add_test(tests, migrations_are_numbered_without_gaps);
	tcase_add_test(tests, a_newer_schema_is_refused);
	tcase_add_test(tests, a_database_of_others_is_refused);
	tcase_add_test(tests, a_migration_that_fails_leaves_the_file_as_it_was);
	tcase_add_test(tests, what_old_buckets_allow_is_believed);
	tcase_add_test(tests, old_keys_are_sound);
	tcase_add_test(tests, the_gate_is_asked_only_before_the_schema_changes);
	tcase_add_test(tests, a_refusal_leaves_the_old_schema);
	tcase_add_test(tests, the_log_of_a_catalog_that_is_refused_stays);
	suite_add_tcase(suite, tests);
	return suite;
}
