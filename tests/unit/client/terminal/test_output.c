#include "tests/unit/unit.h"

#include "client/terminal/output.h"

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
	char text[OUTPUT_SIZE_BYTES];
	output_format_size(SIZES[_i].bytes, text);
	ck_assert_str_eq(text, SIZES[_i].text);
}
END_TEST

Suite *test_output_suite(void);
Suite *test_output_suite(void)
{
	Suite *const suite = suite_create("output");
	TCase *const tests = tcase_create("output");
	tcase_add_loop_test(tests, sizes_read_well, 0, sizeof SIZES / sizeof SIZES[0]);
	suite_add_tcase(suite, tests);
	return suite;
}
