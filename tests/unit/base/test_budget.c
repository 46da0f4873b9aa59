#include "base/budget.h"
#include "tests/unit/unit.h"

Suite *test_budget_suite(void);

enum { SLOW = 1, OTHER = 2, THIRD = 3 };

START_TEST(what_is_taken_is_bounded)
{
	struct budget budget;
	budget_init(&budget, 100);
	ck_assert(budget_take(&budget, SLOW, 60));
	ck_assert(!budget_take(&budget, OTHER, 41));
	ck_assert(budget_take(&budget, OTHER, 40));
	ck_assert(!budget_take(&budget, THIRD, 1));
	ck_assert(budget_take(&budget, THIRD, 0));
	budget_give(&budget, SLOW, 60);
	ck_assert(budget_take(&budget, THIRD, 1));
	ck_assert_uint_eq(budget_used(&budget), 41);
	budget_give(&budget, OTHER, 40);
	budget_give(&budget, THIRD, 1);
	budget_give(&budget, THIRD, 0);
	ck_assert_uint_eq(budget_used(&budget), 0);
	budget_release(&budget);
}
END_TEST

START_TEST(nobody_takes_more_than_he_leaves)
{
	struct budget budget;
	unsigned taken = 0;
	budget_init(&budget, 100);
	while (budget_take(&budget, SLOW, 10))
		taken++;
	ck_assert_uint_eq(taken, 5);
	for (taken = 0; budget_take(&budget, OTHER, 5);)
		taken++;
	ck_assert_uint_eq(taken, 5);
	ck_assert(budget_take(&budget, THIRD, 25)); /* who has none yet, as much as there is */
	ck_assert(!budget_take(&budget, THIRD, 1));
	for (int i = 0; i < 4; i++)
		budget_give(&budget, SLOW, 10);
	ck_assert(budget_take(&budget, OTHER, 5)); /* who has some, more again when others leave some */
	budget_give(&budget, SLOW, 10);
	budget_give(&budget, OTHER, 30);
	budget_give(&budget, THIRD, 25);
	budget_release(&budget);
}
END_TEST

/* Else it could never be had. */
START_TEST(who_is_alone_may_have_more)
{
	struct budget budget;
	budget_init(&budget, 100);
	ck_assert(budget_take(&budget, SLOW, 1000));
	ck_assert(!budget_take(&budget, SLOW, 1));
	ck_assert(!budget_take(&budget, OTHER, 1));
	budget_give(&budget, SLOW, 1000);
	ck_assert(budget_take(&budget, SLOW, UINT64_MAX));
	ck_assert(!budget_take(&budget, SLOW, UINT64_MAX));
	ck_assert(!budget_take(&budget, OTHER, UINT64_MAX));
	budget_give(&budget, SLOW, UINT64_MAX);
	budget_release(&budget);
}
END_TEST

Suite *test_budget_suite(void)
{
	Suite *const suite = suite_create("budget");
	TCase *const all = tcase_create("all");
	tcase_add_test(all, what_is_taken_is_bounded);
	tcase_add_test(all, nobody_takes_more_than_he_leaves);
	tcase_add_test(all, who_is_alone_may_have_more);
	suite_add_tcase(suite, all);
	return suite;
}
