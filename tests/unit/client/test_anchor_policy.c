#include "tests/unit/unit.h"

#include "client/anchor_policy.h"

static const struct {
	const char *policy;
	struct anchor_history history;
	uint64_t step;
	uint64_t delta_bytes;
	bool wants;
} CASES[] = {
	{"auto", {false, 0, 0, 0}, 0, 0, true},
	{"never", {false, 0, 0, 0}, 0, 0, true}, /* a run cannot begin without one */
	{"auto", {true, 1000, 0, 0}, 1, 300, false},
	{"auto", {true, 1000, 0, 0}, 1, 301, true},
	{"auto", {true, 1000, 250, 3}, 4, 50, false},
	{"auto", {true, 1000, 250, 3}, 4, 51, true},
	{"auto", {true, 1000000, 64, 63}, 64, 1, false},
	{"auto", {true, 1000000, 64, 64}, 65, 1, true},
	{NULL, {true, 1000, 0, 0}, 1, 301, true},
	{"always", {true, 1000, 0, 0}, 1, 0, true},
	{"never", {true, 1000, 5000, 500}, 500, 9999, false},
	{"8", {true, 1000, 5000, 7}, 7, 9999, false},
	{"8", {true, 1000, 0, 0}, 8, 1, true},
	{"1", {true, 1000, 0, 0}, 3, 1, true},
};

START_TEST(policies_decide)
{
	struct anchor_policy policy;
	struct error err = {0};
	ck_assert_int_eq(anchor_policy_parse(CASES[_i].policy, &policy, &err), 0);
	ck_assert_int_eq(anchor_policy_wants(&policy, &CASES[_i].history, CASES[_i].step, CASES[_i].delta_bytes), CASES[_i].wants);
}
END_TEST

static const char *const REFUSED[] = {"0", "-1", "sometimes", "", "8x"};

START_TEST(other_words_are_refused)
{
	struct anchor_policy policy;
	struct error err = {0};
	ck_assert_int_eq(anchor_policy_parse(REFUSED[_i], &policy, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

START_TEST(an_anchor_starts_the_count_over)
{
	struct anchor_history history = {0};
	anchor_history_add(&history, 1000, 0);
	anchor_history_add(&history, 0, 30);
	anchor_history_add(&history, 0, 40);
	ck_assert(history.has_anchor);
	ck_assert_uint_eq(history.delta_bytes, 70);
	ck_assert_uint_eq(history.links, 2);
	anchor_history_add(&history, 1100, 50);
	ck_assert_uint_eq(history.anchor_bytes, 1100);
	ck_assert_uint_eq(history.delta_bytes, 0);
	ck_assert_uint_eq(history.links, 0);
}
END_TEST

Suite *test_anchor_policy_suite(void);
Suite *test_anchor_policy_suite(void)
{
	Suite *const suite = suite_create("anchor_policy");
	TCase *const tests = tcase_create("anchor_policy");
	tcase_add_loop_test(tests, policies_decide, 0, sizeof CASES / sizeof CASES[0]);
	tcase_add_loop_test(tests, other_words_are_refused, 0, sizeof REFUSED / sizeof REFUSED[0]);
	tcase_add_test(tests, an_anchor_starts_the_count_over);
	suite_add_tcase(suite, tests);
	return suite;
}
