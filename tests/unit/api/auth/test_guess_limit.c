#include "tests/unit/unit.h"

#include "api/auth/guess_limit.h"

static struct clock_fake clock_now;
static struct guess_limit *limit;

static void setup(void)
{
	clock_fake_init(&clock_now, 1000000);
	limit = guess_limit_new(&clock_now.source);
}

static void teardown(void)
{
	guess_limit_free(limit);
}

static unsigned take(uint64_t peer, const char *key)
{
	return guess_limit_take(limit, peer, span_text(key));
}

START_TEST(a_burst_and_then_one_in_a_pause)
{
	for (int i = 0; i < GUESS_BURST; i++)
		ck_assert_uint_eq(take(1, "k"), 0);
	ck_assert_uint_gt(take(1, "k"), 0);
	clock_now.now_ms += GUESS_PAUSE_MS - 1;
	ck_assert_uint_gt(take(1, "k"), 0);
	clock_now.now_ms += 1;
	ck_assert_uint_eq(take(1, "k"), 0);
	ck_assert_uint_gt(take(1, "k"), 0);
}
END_TEST

START_TEST(others_are_not_locked_out)
{
	while (take(1, "k") == 0)
		;
	ck_assert_uint_eq(take(2, "k"), 0);
	ck_assert_uint_eq(take(1, "other"), 0);
}
END_TEST

START_TEST(an_address_has_a_bound_over_all_keys)
{
	char key[2] = "a";
	int judged = 0;
	for (int i = 0; i < 26; i++, key[0]++)
		for (int j = 0; j < 4; j++)
			judged += take(1, key) == 0;
	ck_assert_int_eq(judged, 6 * GUESS_BURST);
	ck_assert_uint_eq(take(2, "a"), 0);
}
END_TEST

START_TEST(right_guesses_cost_nothing)
{
	for (int i = 0; i < 1000; i++) {
		ck_assert_uint_eq(take(1, "k"), 0);
		guess_limit_give(limit, 1, span_text("k"));
	}
	ck_assert_uint_eq(guess_limit_take(NULL, 1, span_text("k")), 0);
}
END_TEST

Suite *test_guess_limit_suite(void);
Suite *test_guess_limit_suite(void)
{
	Suite *const suite = suite_create("guess_limit");
	TCase *const tcase = tcase_create("guess_limit");
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_burst_and_then_one_in_a_pause);
	tcase_add_test(tcase, others_are_not_locked_out);
	tcase_add_test(tcase, an_address_has_a_bound_over_all_keys);
	tcase_add_test(tcase, right_guesses_cost_nothing);
	suite_add_tcase(suite, tcase);
	return suite;
}
