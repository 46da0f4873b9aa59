#include "tests/unit/unit.h"

#include "client/remote/retry.h"

static const struct {
	int status;
	bool worth;
} STATUSES[] = {
	{200, false},
	{304, false},
	{400, false},
	{401, false},
	{403, false},
	{404, false},
	{409, false},
	{410, false},
	{412, false},
	{422, false},
	{425, false},
	{429, true},
	{500, true},
	{501, false},
	{502, true},
	{503, true},
	{504, true},
	{507, false},
};

START_TEST(only_what_passes_is_repeated)
{
	ck_assert_int_eq(retry_worth_status(STATUSES[_i].status), STATUSES[_i].worth);
}
END_TEST

/* For every random number, the delay is between half and all of a ceiling that doubles up to
 * RETRY_MOST_MS. */
START_TEST(delays_grow_and_are_bounded)
{
	static const uint32_t RANDOMS[] = {0, 1, 99, 12345678, UINT32_MAX};
	for (unsigned attempt = 0; attempt < 40; attempt++) {
		const int64_t doubled =
			attempt < 20 ? (int64_t)RETRY_FIRST_MS << attempt : RETRY_MOST_MS;
		const int64_t ceiling = doubled < RETRY_MOST_MS ? doubled : RETRY_MOST_MS;
		for (size_t i = 0; i < sizeof RANDOMS / sizeof RANDOMS[0]; i++) {
			const int64_t delay = retry_delay_ms(attempt, -1, RANDOMS[i]);
			ck_assert_int_ge(delay, ceiling / 2);
			ck_assert_int_le(delay, ceiling);
		}
	}
}
END_TEST

START_TEST(the_servers_wish_is_honoured)
{
	ck_assert_int_ge(retry_delay_ms(0, 7, 0), 7000);
	ck_assert_int_ge(retry_delay_ms(0, 0, 0), RETRY_FIRST_MS / 2);
	ck_assert_int_le(
		retry_delay_ms(0, 1000000, UINT32_MAX), RETRY_AFTER_MOST_S * 1000 + RETRY_FIRST_MS);
}
END_TEST

START_TEST(tries_run_out_unless_there_is_progress)
{
	struct retry retry;
	retry_init(&retry, NULL, 1);
	ck_assert(retry_again(&retry, -1));
	ck_assert(!retry_again(&retry, -1));
	retry_reset(&retry);
	ck_assert(retry_again(&retry, -1));
	ck_assert(!retry_again(&retry, -1));
	retry_init(&retry, NULL, 0);
	ck_assert(!retry_again(&retry, -1));
}
END_TEST

Suite *test_retry_suite(void);
Suite *test_retry_suite(void)
{
	Suite *const suite = suite_create("retry");
	TCase *const tests = tcase_create("retry");
	tcase_add_loop_test(
		tests, only_what_passes_is_repeated, 0, sizeof STATUSES / sizeof STATUSES[0]);
	tcase_add_test(tests, delays_grow_and_are_bounded);
	tcase_add_test(tests, the_servers_wish_is_honoured);
	tcase_add_test(tests, tries_run_out_unless_there_is_progress);
	suite_add_tcase(suite, tests);
	return suite;
}
