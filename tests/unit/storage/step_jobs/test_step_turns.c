#include "storage/step_jobs/step_turns.h"
#include "tests/unit/unit.h"

enum { ONE = 1, OTHER = 2, THIRD = 3, LIKE_ONE = ONE + STEP_TURNS };

START_TEST(who_was_served_longest_ago_comes_first)
{
	struct step_turns turns = {0};
	ck_assert_uint_eq(step_turns_last(&turns, ONE), 0);
	step_turns_serve(&turns, ONE);
	step_turns_serve(&turns, OTHER);
	ck_assert_uint_lt(step_turns_last(&turns, THIRD), step_turns_last(&turns, ONE));
	ck_assert_uint_lt(step_turns_last(&turns, ONE), step_turns_last(&turns, OTHER));
	step_turns_serve(&turns, ONE);
	ck_assert_uint_lt(step_turns_last(&turns, OTHER), step_turns_last(&turns, ONE));
}
END_TEST

/* Two accounts that share a slot have one turn; negative numbers do no harm. */
START_TEST(any_number_has_a_turn)
{
	struct step_turns turns = {0};
	step_turns_serve(&turns, LIKE_ONE);
	ck_assert_uint_eq(step_turns_last(&turns, ONE), 1);
	step_turns_serve(&turns, -1);
	ck_assert_uint_eq(step_turns_last(&turns, -1), 2);
}
END_TEST

Suite *test_step_turns_suite(void);
Suite *test_step_turns_suite(void)
{
	Suite *const suite = suite_create("step_turns");
	TCase *const all = tcase_create("all");
	tcase_add_test(all, who_was_served_longest_ago_comes_first);
	tcase_add_test(all, any_number_has_a_turn);
	suite_add_tcase(suite, all);
	return suite;
}
