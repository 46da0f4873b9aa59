#include "tests/unit/unit.h"

#include <string.h>

#include "client/work/output.h"

static void keep(void *owner, const char *sentence, bool is_warning)
{
	strcat(strcat((char *)owner, sentence), is_warning ? "!" : "|");
}

/* The library's caller gets the sentences, those for stderr as warnings, and --quiet's rule holds
 * there too. */
START_TEST(sentences_go_to_the_one_that_listens)
{
	char said[200] = "";
	struct output output = {.told = keep, .owner = said, .quiet = _i == 1};
	output_result(&output, "result %d", 1);
	output_say(&output, "say");
	output_note(&output, "note %s", "two");
	output_failure(&output, "failure");
	ck_assert_str_eq(said, _i == 1 ? "result 1|failure!" : "result 1|say|note two!failure!");
}
END_TEST

Suite *test_output_suite(void);

Suite *test_output_suite(void)
{
	Suite *const suite = suite_create("output");
	TCase *const tests = tcase_create("output");
	tcase_add_loop_test(tests, sentences_go_to_the_one_that_listens, 0, 2);
	suite_add_tcase(suite, tests);
	return suite;
}
