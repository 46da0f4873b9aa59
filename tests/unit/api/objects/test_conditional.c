#include "api/objects/conditional.h"

#include "tests/unit/unit.h"

/* The object has ETag "abc" and was modified Sun, 06 Nov 1994 08:49:37.250 GMT; now it is 1995. */
static const char etag[] = "abc";
static const char before[] = "Sun, 06 Nov 1994 08:49:36 GMT";
static const char same[] = "Sun, 06 Nov 1994 08:49:37 GMT";
static const char after[] = "Sun, 06 Nov 1994 08:49:38 GMT";
static const char future[] = "Fri, 06 Nov 2015 08:49:38 GMT";
enum { SECOND_1994 = 784111777 };
static const int64_t modified_ms = (int64_t)SECOND_1994 * 1000 + 250;
static const int64_t now_ms = (int64_t)SECOND_1994 * 1000 + (int64_t)365 * 86400000;

static const struct judge_row {
	const char *if_match;
	const char *if_unmodified_since;
	const char *if_none_match;
	const char *if_modified_since;
	enum conditional_result result;
} rows[] = {
	{NULL, NULL, NULL, NULL, CONDITIONAL_GO_ON},
	{"", "", "", "", CONDITIONAL_GO_ON},

	{"\"abc\"", NULL, NULL, NULL, CONDITIONAL_GO_ON},
	{"abc", NULL, NULL, NULL, CONDITIONAL_GO_ON},
	{"W/\"abc\"", NULL, NULL, NULL, CONDITIONAL_GO_ON},
	{"*", NULL, NULL, NULL, CONDITIONAL_GO_ON},
	{"\"x\", \"abc\" ,\"y\"", NULL, NULL, NULL, CONDITIONAL_GO_ON},
	{"\"abcd\"", NULL, NULL, NULL, CONDITIONAL_FAILED},
	{"\"ab\"", NULL, NULL, NULL, CONDITIONAL_FAILED},
	{"\"ABC\"", NULL, NULL, NULL, CONDITIONAL_FAILED},
	{",", NULL, NULL, NULL, CONDITIONAL_FAILED},
	{"xabc\"", NULL, NULL, NULL, CONDITIONAL_FAILED},
	{"\"abcx", NULL, NULL, NULL, CONDITIONAL_FAILED},

	/* If-Match decides, and the date is ignored. */
	{"\"abc\"", before, NULL, NULL, CONDITIONAL_GO_ON},
	{"\"x\"", after, NULL, NULL, CONDITIONAL_FAILED},
	{"\"x\"", NULL, "\"abc\"", NULL, CONDITIONAL_FAILED},

	{NULL, before, NULL, NULL, CONDITIONAL_FAILED},
	{NULL, same, NULL, NULL, CONDITIONAL_GO_ON},
	{NULL, after, NULL, NULL, CONDITIONAL_GO_ON},
	{NULL, "yesterday", NULL, NULL, CONDITIONAL_GO_ON},
	{NULL, before, "\"abc\"", NULL, CONDITIONAL_FAILED},

	{NULL, NULL, "\"abc\"", NULL, CONDITIONAL_NOT_MODIFIED},
	{NULL, NULL, "W/\"abc\"", NULL, CONDITIONAL_NOT_MODIFIED},
	{NULL, NULL, "*", NULL, CONDITIONAL_NOT_MODIFIED},
	{NULL, NULL, "\"x\"", NULL, CONDITIONAL_GO_ON},
	/* If-None-Match decides, and the date is ignored. */
	{NULL, NULL, "\"abc\"", before, CONDITIONAL_NOT_MODIFIED},
	{NULL, NULL, "\"x\"", after, CONDITIONAL_GO_ON},
	{"\"abc\"", NULL, "\"abc\"", NULL, CONDITIONAL_NOT_MODIFIED},

	{NULL, NULL, NULL, before, CONDITIONAL_GO_ON},
	{NULL, NULL, NULL, same, CONDITIONAL_NOT_MODIFIED},
	{NULL, NULL, NULL, after, CONDITIONAL_NOT_MODIFIED},
	{NULL, NULL, NULL, future, CONDITIONAL_GO_ON},
	{NULL, NULL, NULL, "never", CONDITIONAL_GO_ON},
	{"\"abc\"", NULL, NULL, same, CONDITIONAL_NOT_MODIFIED},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

START_TEST(test_row)
{
	const struct judge_row *const row = &rows[_i];
	const struct conditional conditional = {span_text(row->if_match),
		span_text(row->if_unmodified_since), span_text(row->if_none_match),
		span_text(row->if_modified_since)};
	ck_assert_int_eq(conditional_judge(&conditional, etag, modified_ms, now_ms), row->result);
}
END_TEST

START_TEST(a_time_after_now_is_none)
{
	const struct conditional conditional = {.if_modified_since = span_text(after)};
	const int64_t after_ms = (int64_t)(SECOND_1994 + 1) * 1000;
	ck_assert_int_eq(conditional_judge(&conditional, etag, modified_ms, after_ms),
		CONDITIONAL_NOT_MODIFIED);
	ck_assert_int_eq(conditional_judge(&conditional, etag, modified_ms, after_ms - 1),
		CONDITIONAL_GO_ON);
}
END_TEST

START_TEST(test_if_range)
{
	ck_assert(conditional_range_holds(span_text(" \"abc\"\t"), etag, modified_ms));
	ck_assert(!conditional_range_holds(span_text("xabc\""), etag, modified_ms));
	ck_assert(conditional_range_holds(span_text(NULL), etag, modified_ms));
	ck_assert(conditional_range_holds(span_text("\"abc\""), etag, modified_ms));
	ck_assert(conditional_range_holds(span_text(same), etag, modified_ms));
	ck_assert(!conditional_range_holds(span_text("\"abd\""), etag, modified_ms));
	ck_assert(!conditional_range_holds(span_text("W/\"abc\""), etag, modified_ms));
	ck_assert(!conditional_range_holds(span_text(before), etag, modified_ms));
	ck_assert(!conditional_range_holds(span_text(after), etag, modified_ms));
}
END_TEST

Suite *test_conditional_suite(void);
Suite *test_conditional_suite(void)
{
	Suite *const suite = suite_create("conditional");
	TCase *const rules = tcase_create("rules");
	tcase_add_loop_test(rules, test_row, 0, ROWS);
	tcase_add_test(rules, a_time_after_now_is_none);
	tcase_add_test(rules, test_if_range);
	suite_add_tcase(suite, rules);
	return suite;
}
