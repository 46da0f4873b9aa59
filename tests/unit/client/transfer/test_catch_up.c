#include "tests/unit/unit.h"

#include "client/transfer/catch_up.h"

static const struct {
	enum error_kind kind;
	bool wants;
} CASES[] = {
	{ERROR_WRONG_BASE, true},
	{ERROR_DIGEST_MISMATCH, true},
	{ERROR_CORRUPT, true},
	{ERROR_INVALID, true},
	{ERROR_NOT_FOUND, true},
	{ERROR_UNSUPPORTED, true},
	{ERROR_UPSTREAM, false},
	{ERROR_NO_SPACE, false},
	{ERROR_DENIED, false},
	{ERROR_BUSY, false},
	{ERROR_NO_RUN, false},
	{ERROR_NOT_READY, false},
	{ERROR_COLLECTED, false},
};

/* An anchor cures damage. After a lost connection, a full disk or a signal it would only cost
 * more. */
START_TEST(only_damage_wants_an_anchor)
{
	const struct error err = {.kind = CASES[_i].kind};
	ck_assert_int_eq(catch_up_wants_anchor(&err), CASES[_i].wants);
}
END_TEST

Suite *test_catch_up_suite(void);
Suite *test_catch_up_suite(void)
{
	Suite *const suite = suite_create("catch_up");
	TCase *const tests = tcase_create("catch_up");
	tcase_add_loop_test(tests, only_damage_wants_an_anchor, 0, sizeof CASES / sizeof CASES[0]);
	suite_add_tcase(suite, tests);
	return suite;
}
