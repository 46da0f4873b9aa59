#include "tests/unit/unit.h"

#include "base/columns.h"

START_TEST(words_stay_in_their_column)
{
	struct buffer out;
	buffer_init(&out, 4096);
	columns_add(&out, "--a", 6, "short");
	columns_add(&out, "--long", 6,
		"words that go on until the line is full, and then some more of them that stand below the first one of all");
	columns_add(&out, "--longer-than-that", 6, "below");
	ck_assert_str_eq(buffer_text(&out),
		"  --a     short\n"
		"  --long  words that go on until the line is full, and then some more of them that stand below the\n"
		"          first one of all\n"
		"  --longer-than-that\n"
		"          below\n");
	buffer_release(&out);
}
END_TEST

START_TEST(the_widest_counts_unless_it_is_too_wide)
{
	ck_assert_uint_eq(columns_widen(3, "four"), 4);
	ck_assert_uint_eq(columns_widen(5, "four"), 5);
	ck_assert_uint_eq(
		columns_widen(5, "this one is much too wide to be a column of its own"), 5);
}
END_TEST

Suite *test_columns_suite(void);
Suite *test_columns_suite(void)
{
	Suite *const suite = suite_create("columns");
	TCase *const tests = tcase_create("columns");
	tcase_add_test(tests, words_stay_in_their_column);
	tcase_add_test(tests, the_widest_counts_unless_it_is_too_wide);
	suite_add_tcase(suite, tests);
	return suite;
}
