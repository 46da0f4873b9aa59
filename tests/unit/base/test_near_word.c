#include "tests/unit/unit.h"

#include "base/near_word.h"

static const char *const WORDS[] = {"publish", "put", "pins", "get", "ls", "rm", "runs", "replicas",
	"--create-bucket", "--recursive"};

static const char *nearest(const char *given)
{
	struct near_word near;
	near_word_begin(&near, span_text(given));
	for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++)
		near_word_offer(&near, WORDS[i]);
	return near.best;
}

static const struct {
	const char *given;
	const char *meant;
} CASES[] = {
	{"publsh", "publish"},
	{"pubilsh", "publish"},
	{"pub", "publish"},
	{"pin", "pins"},
	{"rusn", "runs"},
	{"gte", "get"},
	{"sl", "ls"},
	{"--create-buckets", "--create-bucket"},
	{"--recursiv", "--recursive"},
	{"replcas", "replicas"},
	{"nonsense", NULL},
	{"xy", NULL},
	{"", NULL},
	{"a-word-that-is-longer-than-any-name-of-a-command-or-of-a-flag", NULL},
};

START_TEST(what_was_meant_is_found)
{
	ck_assert_pstr_eq(nearest(CASES[_i].given), CASES[_i].meant);
}
END_TEST

START_TEST(the_hint_is_a_question_or_nothing)
{
	struct near_word near;
	char hint[NEAR_WORD_HINT_BYTES];
	near_word_begin(&near, span_text("lss"));
	ck_assert_str_eq(near_word_hint(&near, hint), "");
	near_word_offer(&near, "ls");
	ck_assert_str_eq(near_word_hint(&near, hint), "; did you mean ls?");
}
END_TEST

Suite *test_near_word_suite(void);
Suite *test_near_word_suite(void)
{
	Suite *const suite = suite_create("near_word");
	TCase *const tests = tcase_create("near_word");
	tcase_add_loop_test(tests, what_was_meant_is_found, 0, sizeof CASES / sizeof CASES[0]);
	tcase_add_test(tests, the_hint_is_a_question_or_nothing);
	suite_add_tcase(suite, tests);
	return suite;
}
