#include "tests/unit/unit.h"

#include "storage/files/file_time.h"
#include "storage/files/tree_path.h"

static const struct {
	const char *path;
	bool is_shown;
	bool may_write;
} paths[] = {
	{"a", true, true},
	{"a/b.bin", true, true},
	{"a b/\xc3\xbc", true, true},
	{".a/..b", true, true},
	{"a..b/c", true, true},
	{"a../b", true, true},
	{"ab:c", true, true},
	{"1:c", true, true},
	{"a/:", true, true},
	{"%2e%2e/x", true, true},
	{"", false, false},
	{"/a", false, false},
	{"a/", false, false},
	{"a//b", false, false},
	{"./a", false, false},
	{"a/./b", false, false},
	{"..", false, false},
	{"../a", false, false},
	{"a/../b", false, false},
	{"a/..", false, false},
	{"a:b", false, false},
	{"C:/x", false, false},
	{"x/c:", false, false},
	{"\\a", false, false},
	{"a/\\b", false, false},
	{"a\\..\\b", false, false},
	{"a\\..", false, false},
	{"a\\b", true, false},
	{"a..", true, false},
	{"a/b..", true, false},
	{"\xff", true, false},
};

START_TEST(paths_that_lead_out_of_a_folder_or_are_none_are_neither_shown_nor_written)
{
	struct error err = {0};
	const struct span path = span_text(paths[_i].path);
	ck_assert_int_eq(tree_path_is_shown(path), paths[_i].is_shown);
	ck_assert_int_eq(tree_path_check(path, &err), paths[_i].may_write ? 0 : -1);
	ck_assert(paths[_i].may_write || err.kind == ERROR_INVALID);
}
END_TEST

START_TEST(a_path_may_have_as_many_bytes_as_a_key)
{
	struct error err = {0};
	uint8_t bytes[1025];
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = 'x';
	ck_assert_int_eq(tree_path_check(span_of(bytes, 1024), &err), 0);
	ck_assert_int_eq(tree_path_check(span_of(bytes, 1025), &err), -1);
	bytes[3] = '\0';
	ck_assert_int_eq(tree_path_check(span_of(bytes, 8), &err), -1);
}
END_TEST

static const struct {
	const char *text;
	int64_t ms; /* -1: none */
} times[] = {
	{"0", 0},
	{"1700000000", 1700000000000},
	{"1700000000.5", 1700000000500},
	{"1700000000.123", 1700000000123},
	{"1700000000.123456789", 1700000000123},
	{"253402300799.999", 253402300799999},
	{"253402300800", -1},
	{"", -1},
	{".5", -1},
	{"1.", -1},
	{"-1", -1},
	{"1e3", -1},
	{"1.2.3", -1},
	{"99999999999999999999", -1},
};

START_TEST(times_are_seconds_with_a_fraction)
{
	int64_t ms = -1;
	char text[FILE_TIME_TEXT_BYTES];
	ck_assert_int_eq(file_time_parse(span_text(times[_i].text), &ms), times[_i].ms >= 0);
	if (times[_i].ms < 0)
		return;
	ck_assert_int_eq(ms, times[_i].ms);
	file_time_print(ms, text);
	ck_assert(file_time_parse(span_text(text), &ms));
	ck_assert_int_eq(ms, times[_i].ms);
}
END_TEST

START_TEST(times_out_of_range_become_the_nearest)
{
	char text[FILE_TIME_TEXT_BYTES];
	file_time_print(-5, text);
	ck_assert_str_eq(text, "0.000");
	file_time_print(INT64_MAX, text);
	ck_assert_str_eq(text, "253402300799.999");
}
END_TEST

Suite *test_tree_path_suite(void);
Suite *test_tree_path_suite(void)
{
	Suite *const suite = suite_create("tree_path");
	TCase *const tests = tcase_create("tree_path");
	tcase_add_loop_test(tests,
		paths_that_lead_out_of_a_folder_or_are_none_are_neither_shown_nor_written, 0,
		sizeof(paths) / sizeof(paths[0]));
	tcase_add_test(tests, a_path_may_have_as_many_bytes_as_a_key);
	tcase_add_loop_test(
		tests, times_are_seconds_with_a_fraction, 0, sizeof(times) / sizeof(times[0]));
	tcase_add_test(tests, times_out_of_range_become_the_nearest);
	suite_add_tcase(suite, tests);
	return suite;
}
