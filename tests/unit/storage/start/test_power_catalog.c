/* SQLite syncs the catalog by itself, as its settings say. Its calls are counted here, because they
 * do not go through the table of base/file.h. */
#include "tests/unit/unit.h"

#include "tests/unit/storage/log_sync_fixture.h"
#include "tests/unit/storage/store_fixture.h"

enum { COMMITS = 10 };

START_TEST(each_commit_is_synced)
{
	struct error err = {0};
	struct store_fixture fixture = {0};
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	const int before = log_syncs_count();
	for (int i = 0; i < COMMITS; i++)
		ck_assert_msg(fixture_run(fixture.store, "UPDATE buckets SET id = id", &err) == 0,
			"%s", err.text);
	ck_assert_int_ge(log_syncs_count() - before, COMMITS);
	store_fixture_close(&fixture);
}
END_TEST

Suite *test_power_catalog_suite(void);
Suite *test_power_catalog_suite(void)
{
	Suite *const suite = suite_create("power_catalog");
	TCase *const tests = tcase_create("power_catalog");
	tcase_add_test(tests, each_commit_is_synced);
	suite_add_tcase(suite, tests);
	return suite;
}
