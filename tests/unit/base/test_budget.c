#include "base/budget.h"
#include "tests/unit/unit.h"

Suite *test_budget_suite(void);

START_TEST(what_is_taken_is_bounded)
{
	struct budget budget = {.limit = 100};
	ck_assert(budget_take(&budget, 60));
	ck_assert(!budget_take(&budget, 41));
	ck_assert(budget_take(&budget, 40));
	ck_assert(!budget_take(&budget, 1));
	budget_give(&budget, 60);
	ck_assert(budget_take(&budget, 1));
	ck_assert_uint_eq(atomic_load(&budget.used), 41);
}
END_TEST

/* Else it could never be had. */
START_TEST(who_is_alone_may_have_more)
{
	struct budget budget = {.limit = 100};
	ck_assert(budget_take(&budget, 1000));
	ck_assert(!budget_take(&budget, 1));
	budget_give(&budget, 1000);
	ck_assert(budget_take(&budget, UINT64_MAX));
	ck_assert(!budget_take(&budget, UINT64_MAX));
}
END_TEST

Suite *test_budget_suite(void)
{
	Suite *const suite = suite_create("budget");
	TCase *const all = tcase_create("all");
	tcase_add_test(all, what_is_taken_is_bounded);
	tcase_add_test(all, who_is_alone_may_have_more);
	suite_add_tcase(suite, all);
	return suite;
}
