#include "tests/unit/unit.h"

#include "client/terminal/exit_code.h"

static const struct {
	enum error_kind kind;
	int code;
} CASES[] = {
	{ERROR_IO, 1},
	{ERROR_INVALID, 13},
	{ERROR_UNSUPPORTED, 14},
	{ERROR_UPSTREAM, 3},
	{ERROR_DENIED, 4},
	{ERROR_NO_CREDENTIALS, 4},
	{ERROR_UNKNOWN_KEY_ID, 4},
	{ERROR_NOT_FOUND, 5},
	{ERROR_NO_RUN, 5},
	{ERROR_COLLECTED, 5},
	{ERROR_STALE_EPOCH, 6},
	{ERROR_HEAD_MOVED, 6},
	{ERROR_STEP_DIFFERS, 6},
	{ERROR_SCHEMA_MISMATCH, 15},
	{ERROR_WRONG_BASE, 11},
	{ERROR_DIGEST_MISMATCH, 12},
	{ERROR_CORRUPT, 7},
	{ERROR_NO_SPACE, 8},
	{ERROR_BUSY, 9},
	{ERROR_NOT_READY, 10},
};

/* Scripts rely on the numbers. */
START_TEST(kinds_have_their_documented_code)
{
	ck_assert_int_eq(exit_code_of(CASES[_i].kind), CASES[_i].code);
}
END_TEST

START_TEST(every_code_is_explained_once)
{
	size_t count;
	const struct exit_code_row *const rows = exit_code_rows(&count);
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		size_t found = 0;
		for (size_t k = 0; k < count; k++)
			found += rows[k].code == (enum exit_code)CASES[i].code;
		ck_assert_uint_eq(found, 1);
	}
}
END_TEST

Suite *test_exit_code_suite(void);
Suite *test_exit_code_suite(void)
{
	Suite *const suite = suite_create("exit_code");
	TCase *const tests = tcase_create("exit_code");
	tcase_add_loop_test(
		tests, kinds_have_their_documented_code, 0, sizeof CASES / sizeof CASES[0]);
	tcase_add_test(tests, every_code_is_explained_once);
	suite_add_tcase(suite, tests);
	return suite;
}
