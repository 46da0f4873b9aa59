#include "tests/unit/unit.h"

#include "base/quantity.h"

static const struct {
	const char *text;
	enum quantity_kind kind;
	uint64_t scale;
	uint64_t value;
} GOOD[] = {
	{"5368709120", QUANTITY_BYTES, 1, UINT64_C(5368709120)},
	{"5GiB", QUANTITY_BYTES, 1, UINT64_C(5368709120)},
	{"5 gib", QUANTITY_BYTES, 1, UINT64_C(5368709120)},
	{"5G", QUANTITY_BYTES, 1, UINT64_C(5368709120)},
	{"1.5GB", QUANTITY_BYTES, 1, 1500000000},
	{"0.5KiB", QUANTITY_BYTES, 1, 512},
	{"7B", QUANTITY_BYTES, 1, 7},
	{"2GiB", QUANTITY_BYTES, 1 << 20, 2048},
	{"2", QUANTITY_BYTES, 1 << 20, 2},
	{"1PiB", QUANTITY_BYTES, 1 << 30, 1 << 20},
	{"30s", QUANTITY_SECONDS, 1, 30},
	{"30", QUANTITY_SECONDS, 1, 30},
	{"10min", QUANTITY_SECONDS, 1, 600},
	{"10m", QUANTITY_SECONDS, 1, 600},
	{"2 h", QUANTITY_SECONDS, 1, 7200},
	{"28d", QUANTITY_SECONDS, 3600, 672},
	{"90min", QUANTITY_SECONDS, 60, 90},
	{"2000ms", QUANTITY_SECONDS, 1, 2},
	{"1.5h", QUANTITY_SECONDS, 1, 5400},
	{"0", QUANTITY_SECONDS, 1, 0},
	{"18446744073709551615", QUANTITY_BYTES, 1, UINT64_MAX},
};

START_TEST(quantities_are_read_exactly)
{
	uint64_t value = 99;
	ck_assert_msg(
		quantity_parse(span_text(GOOD[_i].text), GOOD[_i].kind, GOOD[_i].scale, &value),
		"%s", GOOD[_i].text);
	ck_assert_uint_eq(value, GOOD[_i].value);
}
END_TEST

static const struct {
	const char *text;
	enum quantity_kind kind;
	uint64_t scale;
} BAD[] = {
	{"", QUANTITY_BYTES, 1},
	{"GiB", QUANTITY_BYTES, 1},
	{"-1", QUANTITY_BYTES, 1},
	{"+1", QUANTITY_BYTES, 1},
	{"1e3", QUANTITY_BYTES, 1},
	{"5 apples", QUANTITY_BYTES, 1},
	{"5s", QUANTITY_BYTES, 1},
	{"5MB", QUANTITY_SECONDS, 1},
	{"1.", QUANTITY_BYTES, 1},
	{".5", QUANTITY_BYTES, 1},
	{"0.3B", QUANTITY_BYTES, 1},
	{"1500ms", QUANTITY_SECONDS, 1},
	{"1000kB", QUANTITY_BYTES, 1 << 20},
	{"20000PiB", QUANTITY_BYTES, 1},
	{"18446744073709551616", QUANTITY_BYTES, 1},
	{"1.0000000001GB", QUANTITY_BYTES, 1},
	{"5GiBs", QUANTITY_BYTES, 1},
	{"30min", QUANTITY_SECONDS, 3600},
};

START_TEST(what_is_none_is_refused)
{
	uint64_t value;
	ck_assert_msg(!quantity_parse(span_text(BAD[_i].text), BAD[_i].kind, BAD[_i].scale, &value),
		"%s", BAD[_i].text);
}
END_TEST

static const struct {
	uint64_t bytes;
	const char *text;
} SIZES[] = {
	{0, "0 B"},
	{999, "999 B"},
	{1000, "1.0 kB"},
	{1254304, "1.3 MB"},
	{999949, "999.9 kB"},
	{999999, "1.0 MB"},
	{15200000000, "15.2 GB"},
	{UINT64_MAX, "18.4 EB"},
};

START_TEST(sizes_read_well)
{
	char text[QUANTITY_TEXT_BYTES];
	quantity_format(SIZES[_i].bytes, text);
	ck_assert_str_eq(text, SIZES[_i].text);
}
END_TEST

Suite *test_quantity_suite(void);
Suite *test_quantity_suite(void)
{
	Suite *const suite = suite_create("quantity");
	TCase *const tests = tcase_create("quantity");
	tcase_add_loop_test(tests, quantities_are_read_exactly, 0, sizeof GOOD / sizeof GOOD[0]);
	tcase_add_loop_test(tests, what_is_none_is_refused, 0, sizeof BAD / sizeof BAD[0]);
	tcase_add_loop_test(tests, sizes_read_well, 0, sizeof(SIZES) / sizeof(SIZES[0]));
	suite_add_tcase(suite, tests);
	return suite;
}
