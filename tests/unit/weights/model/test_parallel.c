#include "weights/model/parallel.h"

#include <check.h>
#include <stdatomic.h>
#include <stdbool.h>

Suite *test_parallel_suite(void);

enum { ITEMS = 1000 };

struct run {
	_Atomic unsigned visits[ITEMS];
	unsigned workers;
	size_t fail_from; /* items from here on fail */
};

static int visit(void *state, size_t item, unsigned worker, struct error *err)
{
	struct run *const run = state;
	if (worker >= run->workers)
		return error_set(err, ERROR_INVALID, "worker %u", worker);
	atomic_fetch_add(&run->visits[item], 1);
	return item < run->fail_from ? 0 : error_set(err, ERROR_CORRUPT, "item %zu", item);
}

START_TEST(every_item_is_visited_once)
{
	struct error err = {0};
	struct run run = {.workers = parallel_workers((unsigned)_i, ITEMS), .fail_from = ITEMS};
	ck_assert_msg(parallel_run(run.workers, ITEMS, visit, &run, &err) == 0, "%s", err.text);
	for (size_t i = 0; i < ITEMS; i++)
		ck_assert_uint_eq(run.visits[i], 1);
	ck_assert_int_eq(err.kind, ERROR_NONE);
}
END_TEST

START_TEST(the_lowest_failed_item_is_reported)
{
	struct error err = {0};
	struct run run = {.workers = parallel_workers((unsigned)_i, ITEMS), .fail_from = 500};
	ck_assert_int_eq(parallel_run(run.workers, ITEMS, visit, &run, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_str_eq(err.text, "item 500");
	ck_assert_uint_eq(run.visits[ITEMS - 1], 0);
}
END_TEST

START_TEST(workers_are_bounded)
{
	ck_assert_uint_eq(parallel_workers(8, 3), 3);
	ck_assert_uint_eq(parallel_workers(8, 0), 1);
	ck_assert_uint_eq(parallel_workers(2, 100), 2);
	ck_assert_uint_ge(parallel_workers(0, 100), 1);
	ck_assert_uint_le(parallel_workers(100000, 100000), 64);
}
END_TEST

Suite *test_parallel_suite(void)
{
	Suite *const suite = suite_create("parallel");
	TCase *const tcase = tcase_create("parallel");
	tcase_add_loop_test(tcase, every_item_is_visited_once, 0, 9);
	tcase_add_loop_test(tcase, the_lowest_failed_item_is_reported, 0, 9);
	tcase_add_test(tcase, workers_are_bounded);
	suite_add_tcase(suite, tcase);
	return suite;
}
