/* Pages of the folds of a run. */
#include "tests/unit/unit.h"

#include "storage/core/store.h"
#include "storage/overview/fold_list.h"
#include "tests/unit/storage/run_fixture.h"

static struct store_fixture fixture;
static struct error err;

static void set_up(void)
{
	err = (struct error){0};
	run_fixture_open(&fixture);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

/* State 1: made. */
static void add(int of_run, int from, int to, int kind, int state)
{
	const char *const sql = arena_format(fixture.arena,
		"INSERT INTO folds (run, from_step, to_step, kind, state, format, bytes, used_ms)"
		" VALUES (%d, %d, %d, %d, %d, CAST('ulp-class' AS BLOB), %d, 0)",
		of_run, from, to, kind, state, 100 * to + from);
	ck_assert_msg(fixture_run(fixture.store, sql, &err) == 0, "%s", err.text);
}

static struct fold_list read_page(uint64_t to, size_t limit)
{
	const struct fold_scan scan = {.run = run_fixture_ref, .to = to, .limit = limit};
	struct fold_list list;
	ck_assert_msg(fold_list_read(fixture.store, &scan, fixture.arena, &list, &err) == 0, "%s",
		err.text);
	return list;
}

START_TEST(made_folds_are_listed_the_highest_first)
{
	add(1, 0, 4, 0, 1);
	add(1, 1, 4, 1, 1);
	add(1, 2, 4, 1, 0); /* wanted */
	add(1, 4, 8, 0, 1);
	add(2, 4, 8, 0, 1);
	const struct fold_list list = read_page(INT64_MAX, 10);
	ck_assert_uint_eq(list.count, 3);
	ck_assert(!list.has_next);
	ck_assert_uint_eq(list.folds[0].from, 4);
	ck_assert_uint_eq(list.folds[0].to, 8);
	ck_assert_uint_eq(list.folds[0].bytes, 804);
	ck_assert(!list.folds[0].is_direct);
	ck_assert(span_equal(list.folds[0].format, span_text("ulp-class")));
	ck_assert_uint_eq(list.folds[1].from, 1);
	ck_assert(list.folds[1].is_direct);
	ck_assert_uint_eq(list.folds[2].from, 0);
}
END_TEST

START_TEST(a_page_ends_between_two_steps)
{
	add(1, 4, 8, 0, 1);
	add(1, 0, 4, 0, 1);
	add(1, 1, 4, 1, 1);
	add(1, 0, 3, 1, 1);
	struct fold_list list = read_page(INT64_MAX, 2);
	ck_assert_uint_eq(list.count, 3);
	ck_assert(list.has_next);
	ck_assert_uint_eq(list.next, 3);
	list = read_page(list.next, 2);
	ck_assert_uint_eq(list.count, 1);
	ck_assert_uint_eq(list.folds[0].to, 3);
	ck_assert(!list.has_next);
}
END_TEST

START_TEST(a_run_that_is_not_there_has_no_list)
{
	const struct fold_scan scan = {
		.run = run_named(span_text("bucket"), span_text("none")), .to = 1, .limit = 1};
	struct fold_list list;
	ck_assert_int_eq(fold_list_read(fixture.store, &scan, fixture.arena, &list, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_RUN);
}
END_TEST

Suite *test_fold_list_suite(void);
Suite *test_fold_list_suite(void)
{
	Suite *const suite = suite_create("fold_list");
	TCase *const tests = tcase_create("fold_list");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, made_folds_are_listed_the_highest_first);
	tcase_add_test(tests, a_page_ends_between_two_steps);
	tcase_add_test(tests, a_run_that_is_not_there_has_no_list);
	suite_add_tcase(suite, tests);
	return suite;
}
