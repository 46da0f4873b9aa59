#include "tests/unit/unit.h"

#include "client/publish/anchor_policy.h"

static const struct {
	const char *policy;
	uint64_t step;
	bool due;
	bool wants;
} CASES[] = {
	{"auto", 1, false, false},
	{"auto", 1, true, true},
	{NULL, 64, false, false},
	{NULL, 1, true, true},
	{"always", 1, false, true},
	{"never", 500, true, false},
	{"8", 7, false, false},
	{"8", 7, true, true},
	{"8", 8, false, true},
	{"1", 3, false, true},
};

START_TEST(policies_decide)
{
	struct anchor_policy policy;
	struct error err = {0};
	ck_assert_int_eq(anchor_policy_parse(CASES[_i].policy, &policy, &err), 0);
	ck_assert_int_eq(
		anchor_policy_wants(&policy, CASES[_i].step, CASES[_i].due), CASES[_i].wants);
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

Suite *test_anchor_policy_suite(void);
Suite *test_anchor_policy_suite(void)
{
	Suite *const suite = suite_create("anchor_policy");
	TCase *const tests = tcase_create("anchor_policy");
	tcase_add_loop_test(tests, policies_decide, 0, sizeof CASES / sizeof CASES[0]);
	tcase_add_loop_test(tests, other_words_are_refused, 0, sizeof REFUSED / sizeof REFUSED[0]);
	suite_add_tcase(suite, tests);
	return suite;
}
