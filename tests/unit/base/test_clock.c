#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define EXAMPLE_MS INT64_C(784111777000) /* 1994-11-06T08:49:37Z */

START_TEST(formats_of_one_moment)
{
	char text[CLOCK_TEXT_BYTES];
	clock_format_http(EXAMPLE_MS + 999, text);
	ck_assert_str_eq(text, "Sun, 06 Nov 1994 08:49:37 GMT");
	clock_format_iso(EXAMPLE_MS + 42, text);
	ck_assert_str_eq(text, "1994-11-06T08:49:37.042Z");
	clock_format_amz(EXAMPLE_MS + 42, text);
	ck_assert_str_eq(text, "19941106T084937Z");
}
END_TEST

static const struct {
	int64_t ms;
	const char *iso;
} edge_rows[] = {
	{0, "1970-01-01T00:00:00.000Z"},
	{-1, "1969-12-31T23:59:59.999Z"},
	{INT64_C(951782400000), "2000-02-29T00:00:00.000Z"},
	{INT64_C(4107542399999), "2100-02-28T23:59:59.999Z"},
	{INT64_C(253402300799999), "9999-12-31T23:59:59.999Z"},
	{INT64_MAX, "9999-12-31T23:59:59.999Z"},
	{INT64_MIN, "0000-01-01T00:00:00.000Z"},
};

START_TEST(edges_of_the_calendar)
{
	char text[CLOCK_TEXT_BYTES];
	clock_format_iso(edge_rows[_i].ms, text);
	ck_assert_str_eq(text, edge_rows[_i].iso);
}
END_TEST

static const struct {
	const char *text;
	int64_t ms;
} http_rows[] = {
	{"Sun, 06 Nov 1994 08:49:37 GMT", EXAMPLE_MS},
	{"1994-11-06T08:49:37Z", EXAMPLE_MS},
	{"1994-11-06T08:49:37.5Z", EXAMPLE_MS + 500},
	{"1994-11-06T08:49:37.123456Z", EXAMPLE_MS + 123},
	{"1994-11-06T09:49:37+01:00", EXAMPLE_MS},
	{"1994-11-06T03:19:37-05:30", EXAMPLE_MS},
	{"1994-11-06T00:19:37.25-08:30", EXAMPLE_MS + 250},
	{"2000-02-29T00:00:00Z", INT64_C(951782400000)},
	{"1998-12-31T23:59:60Z", INT64_C(915148800000)},
};

START_TEST(http_and_iso_dates_are_read)
{
	int64_t ms = 0;
	ck_assert(clock_parse_http(span_text(http_rows[_i].text), &ms));
	ck_assert_int_eq(ms, http_rows[_i].ms);
}
END_TEST

static const char *const bad_http_rows[] = {
	"",
	"now",
	"Sun, 06 Nov 1994 08:49:37",
	"Sun, 06 Nov 1994 08:49:37 UTC",
	"Sun, 6 Nov 1994 08:49:37 GMT",
	"sun, 06 Nov 1994 08:49:37 GMT",
	"Sun, 06 NOV 1994 08:49:37 GMT",
	"Sun, 31 Nov 1994 08:49:37 GMT",
	"Sun, 00 Nov 1994 08:49:37 GMT",
	"Sun, 06 Nov 1994 24:49:37 GMT",
	"Sun, 06 Nov 1994 08:60:37 GMT",
	"Sun, 06 Nov 1994 08:49:61 GMT",
	"Sun, 06 Nov 1994 08:49:37 GMT ",
	"1994-11-06",
	"1994-11-06T08:49:37",
	"1994-13-06T08:49:37Z",
	"1994-00-06T08:49:37Z",
	"1999-02-29T08:49:37Z",
	"1900-02-29T08:49:37Z",
	"1994-11-06T08:49:37.Z",
	"1994-11-06T08:49:37+0100",
	"1994-11-06T08:49:37+24:00",
	"1994-11-06T08:49:37ZZ",
	"1994-11-06 08:49:37Z",
	"-994-11-06T08:49:37Z",
	"+1994-11-06T08:49:37Z",
};

START_TEST(other_dates_are_refused)
{
	int64_t ms = 0;
	ck_assert_msg(!clock_parse_http(span_text(bad_http_rows[_i]), &ms), "\"%s\" was read",
		bad_http_rows[_i]);
}
END_TEST

static const char *const bad_amz_rows[] = {
	"",
	"19941106T084937",
	"19941106T084937Z ",
	"19941106t084937Z",
	"1994-11-06T08:49:37Z",
	"19941106T084937z",
	"19941306T084937Z",
	"1994110 T084937Z",
	"19941106T 84937Z",
};

START_TEST(amz_dates_have_exactly_one_form)
{
	int64_t ms = 0;
	ck_assert(clock_parse_amz(span_text("19941106T084937Z"), &ms));
	ck_assert_int_eq(ms, EXAMPLE_MS);
	for (size_t i = 0; i < sizeof bad_amz_rows / sizeof bad_amz_rows[0]; i++)
		ck_assert_msg(!clock_parse_amz(span_text(bad_amz_rows[i]), &ms), "\"%s\" was read",
			bad_amz_rows[i]);
}
END_TEST

START_TEST(what_is_written_is_read_back)
{
	char text[CLOCK_TEXT_BYTES];
	for (int64_t ms = INT64_C(-5000000000000); ms < INT64_C(9000000000000);
		ms += INT64_C(86400123457)) {
		int64_t back = 0;
		clock_format_iso(ms, text);
		ck_assert(clock_parse_http(span_text(text), &back));
		ck_assert_int_eq(back, ms);
		clock_format_http(ms, text);
		ck_assert(clock_parse_http(span_text(text), &back));
		ck_assert_int_le(back, ms);
		ck_assert_int_lt(ms - back, 1000);
	}
}
END_TEST

/* Compares the calendar with that of the C library, over all years that a text can hold. */
START_TEST(days_are_those_the_library_says)
{
	enum { DAYS = 3652425, STEP = 29 }; /* meets every day of every month many times */
	for (int64_t day = -719528; day < DAYS - 719528; day += STEP) {
		char text[CLOCK_TEXT_BYTES];
		char wanted[CLOCK_TEXT_BYTES];
		const time_t second = (time_t)(day * 86400 + (day & 0xFFFF));
		struct tm parts;
		ck_assert(gmtime_r(&second, &parts) != NULL);
		clock_format_http(second * INT64_C(1000), text);
		const char *const months = "JanFebMarAprMayJunJulAugSepOctNovDec";
		const char *const days = "SunMonTueWedThuFriSat";
		snprintf(wanted, sizeof wanted, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT",
			days + 3 * parts.tm_wday, (unsigned)parts.tm_mday % 100,
			months + 3 * parts.tm_mon, (unsigned)(parts.tm_year + 1900) % 10000,
			(unsigned)parts.tm_hour % 100, (unsigned)parts.tm_min % 100,
			(unsigned)parts.tm_sec % 100);
		if (strcmp(text, wanted) != 0)
			ck_abort_msg("day %lld is %s, not %s", (long long)day, text, wanted);
	}
}
END_TEST

START_TEST(fake_clock_stands_until_told)
{
	struct clock_fake fake;
	clock_fake_init(&fake, 1000);
	ck_assert_int_eq(fake.source.wall_ms(&fake.source), 1000);
	ck_assert_int_eq(fake.source.monotonic_ms(&fake.source), 1000);
	atomic_store(&fake.now_ms, 5000);
	ck_assert_int_eq(fake.source.wall_ms(&fake.source), 5000);
}
END_TEST

START_TEST(system_clock_runs_in_this_century)
{
	const struct clock_source *const clock = clock_system();
	const int64_t before = clock->monotonic_ms(clock);
	ck_assert_int_gt(clock->wall_ms(clock), INT64_C(1600000000000));
	ck_assert_int_ge(clock->monotonic_ms(clock), before);
}
END_TEST

Suite *test_clock_suite(void);
Suite *test_clock_suite(void)
{
	Suite *const suite = suite_create("clock");
	TCase *const tc = tcase_create("all");
	tcase_add_test(tc, formats_of_one_moment);
	tcase_add_loop_test(tc, edges_of_the_calendar, 0, sizeof edge_rows / sizeof edge_rows[0]);
	tcase_add_loop_test(
		tc, http_and_iso_dates_are_read, 0, sizeof http_rows / sizeof http_rows[0]);
	tcase_add_loop_test(
		tc, other_dates_are_refused, 0, sizeof bad_http_rows / sizeof bad_http_rows[0]);
	tcase_add_test(tc, amz_dates_have_exactly_one_form);
	tcase_add_test(tc, what_is_written_is_read_back);
	tcase_add_test(tc, days_are_those_the_library_says);
	tcase_add_test(tc, fake_clock_stands_until_told);
	tcase_add_test(tc, system_clock_runs_in_this_century);
	suite_add_tcase(suite, tc);
	return suite;
}
