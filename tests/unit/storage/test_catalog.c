#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "storage/catalog.h"
#include "storage/migration_list.h"

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

static void stamp(const int version, const int application)
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
	ck_assert_int_eq(db_run_script(db, "CREATE TABLE step_objects (x INTEGER)", &err), 0); /* in the way of the last tables */
	db_close(db);
	ck_assert_ptr_null(catalog_open(path, &err));
	db = db_open(path, DB_WRITE, &err);
	ck_assert_int_eq(db_get_version(db, &version, &application, &err), 0);
	ck_assert_int_eq(version, 0);
	ck_assert_int_eq(application, 0);
	ck_assert_ptr_null(db_prepare(db, "SELECT * FROM buckets", &err));
	db_close(db);
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
	suite_add_tcase(suite, tests);
	return suite;
}
