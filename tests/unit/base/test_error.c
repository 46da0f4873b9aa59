#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "tests/unit/base/abort_check.h"

START_TEST(set_gives_kind_sentence_and_minus_one)
{
	struct error err = {.os_errno = 5};
	ck_assert_int_eq(
		error_set(&err, ERROR_NO_KEY, "the object %s/%s does not exist", "b", "k"), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
	ck_assert_int_eq(err.os_errno, 0);
	ck_assert_str_eq(err.text, "the object b/k does not exist");
}
END_TEST

/* "FIRST xxxx... LAST" with `len` bytes in total. */
static void fill_long(char *text, size_t len)
{
	memset(text, 'x', len);
	memcpy(text, "FIRST ", 6);
	memcpy(text + len - 5, " LAST", 6);
}

static void expect_both_ends(const struct error *err, const char *first, const char *last)
{
	ck_assert_uint_eq(strlen(err->text), ERROR_TEXT_BYTES - 1);
	ck_assert_msg(strncmp(err->text, first, strlen(first)) == 0, "%s", err->text);
	ck_assert_msg(
		strcmp(err->text + strlen(err->text) - strlen(last), last) == 0, "%s", err->text);
	ck_assert_msg(strstr(err->text, "x [...] x") != NULL, "%s", err->text);
}

START_TEST(a_long_sentence_lacks_its_middle_and_keeps_both_ends)
{
	struct error err = {0};
	char text[10 * ERROR_TEXT_BYTES];
	fill_long(text, sizeof text - 1);
	error_set(&err, ERROR_INVALID, "%s", text);
	expect_both_ends(&err, "FIRST x", "x LAST");
	error_wrap(&err, "the outer words");
	expect_both_ends(&err, "the outer words: FIRST x", "x LAST");
	error_set(&err, ERROR_INVALID, "inner");
	error_wrap(&err, "%s", text);
	expect_both_ends(&err, "FIRST x", "x LAST: inner");
	errno = EIO;
	error_set_errno(&err, "%s", text);
	expect_both_ends(&err, "FIRST x", "x LAST: Input/output error");
}
END_TEST

START_TEST(a_sentence_that_just_fits_is_whole)
{
	struct error err = {0};
	char text[ERROR_TEXT_BYTES + 1];
	fill_long(text, ERROR_TEXT_BYTES - 1);
	error_set(&err, ERROR_INVALID, "%s", text);
	ck_assert_str_eq(err.text, text);
	fill_long(text, ERROR_TEXT_BYTES);
	error_set(&err, ERROR_INVALID, "%s", text);
	expect_both_ends(&err, "FIRST x", "x LAST");
}
END_TEST

/* With 0, 1 and 2 bytes before the first three-byte letter, the cuts fall on each of its bytes. */
START_TEST(what_is_left_out_is_whole_letters)
{
	struct error err = {0};
	char text[4 * ERROR_TEXT_BYTES] = "";
	for (int i = 0; i < ERROR_TEXT_BYTES; i++)
		memcpy(text + 3 * i, "\xe2\x82\xac", 4);
	error_set(&err, ERROR_INVALID, "%.*s%s", _i, "ab", text);
	const char *const gap = strstr(err.text, " [...] ");
	ck_assert_ptr_nonnull(gap);
	ck_assert_uint_eq((size_t)(gap - err.text - _i) % 3, 0);
	ck_assert_uint_eq(strlen(gap + 7) % 3, 0);
}
END_TEST

static const struct {
	int os_errno;
	enum error_kind kind;
} errno_rows[] = {
	{ENOENT, ERROR_NOT_FOUND},
	{ENOSPC, ERROR_NO_SPACE},
	{EDQUOT, ERROR_NO_SPACE},
	{ENOMEM, ERROR_NO_MEMORY},
	{EACCES, ERROR_DENIED},
	{EPERM, ERROR_DENIED},
	{EIO, ERROR_IO},
	{EEXIST, ERROR_IO},
};

START_TEST(errno_gives_kind_and_reason)
{
	struct error err = {0};
	char wanted[200];
	snprintf(wanted, sizeof wanted, "cannot open /a/b: %s", strerror(errno_rows[_i].os_errno));
	errno = errno_rows[_i].os_errno;
	ck_assert_int_eq(error_set_errno(&err, "cannot open %s", "/a/b"), -1);
	ck_assert_int_eq(err.kind, errno_rows[_i].kind);
	ck_assert_int_eq(err.os_errno, errno_rows[_i].os_errno);
	ck_assert_str_eq(err.text, wanted);
}
END_TEST

START_TEST(wrap_prefixes_and_keeps_kind_and_errno)
{
	struct error err = {0};
	errno = ENOSPC;
	error_set_errno(&err, "cannot write %s", "pack");
	ck_assert_int_eq(error_wrap(&err, "publishing step %d", 5), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_SPACE);
	ck_assert_int_eq(err.os_errno, ENOSPC);
	ck_assert_str_eq(err.text, "publishing step 5: cannot write pack: No space left on device");
}
END_TEST

static const struct {
	const char *before;
	const char *after;
} advice_rows[] = {
	{"Access is denied.", "Access is denied; ask for a key"},
	{"cannot open x: Permission denied", "cannot open x: Permission denied; ask for a key"},
	{"", "; ask for a key"},
};

START_TEST(advice_replaces_the_full_stop_and_keeps_kind_and_errno)
{
	struct error err = {.kind = ERROR_DENIED, .os_errno = EACCES};
	snprintf(err.text, sizeof err.text, "%s", advice_rows[_i].before);
	ck_assert_int_eq(error_advise(&err, "ask for a %s", "key"), -1);
	ck_assert_int_eq(err.kind, ERROR_DENIED);
	ck_assert_int_eq(err.os_errno, EACCES);
	ck_assert_str_eq(err.text, advice_rows[_i].after);
}
END_TEST

/* The id of the refused request goes with the failure through all its wordings, and not on to the
 * next one. */
START_TEST(the_request_id_stays_until_another_failure)
{
	struct error err = {0};
	error_set(&err, ERROR_NOT_FOUND, "refused");
	strcpy(err.request_id, "id-1");
	error_wrap(&err, "getting it");
	error_advise(&err, "look elsewhere");
	ck_assert_int_eq(error_reword(&err, ERROR_NO_KEY, "no object (%s)", err.text), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
	ck_assert_str_eq(err.text, "no object (getting it: refused; look elsewhere)");
	ck_assert_str_eq(err.request_id, "id-1");
	error_set(&err, ERROR_IO, "another");
	ck_assert_str_eq(err.request_id, "");
}
END_TEST

START_TEST(text_may_be_its_own_argument)
{
	struct error err = {0};
	error_set(&err, ERROR_INVALID, "inner");
	error_set(&err, ERROR_CORRUPT, "outer (%s)", err.text);
	ck_assert_str_eq(err.text, "outer (inner)");
}
END_TEST

static const struct {
	const char *upper;
	enum error_kind kind;
} kind_rows[] = {
#define ERROR_KIND(name, number, meaning) {#name, ERROR_##name},
#include "base/error.def"
#undef ERROR_KIND
};

START_TEST(every_kind_has_its_lower_case_name)
{
	char wanted[64];
	snprintf(wanted, sizeof wanted, "%s", kind_rows[_i].upper);
	for (char *at = wanted; *at != '\0'; at++)
		*at = *at >= 'A' && *at <= 'Z' ? (char)(*at + 32) : *at;
	ck_assert_str_eq(error_kind_name(kind_rows[_i].kind), wanted);
}
END_TEST

START_TEST(unknown_kind_has_a_name_too)
{
	ck_assert_str_eq(error_kind_name(ERROR_NONE), "none");
	ck_assert_str_eq(error_kind_name((enum error_kind)15), "unknown");
	ck_assert_str_eq(error_kind_name((enum error_kind)4711), "unknown");
}
END_TEST

static void fail_assertion(void *argument)
{
	ASSERT(argument != NULL);
}

START_TEST(failed_assertion_aborts)
{
	abort_check(fail_assertion, NULL);
}
END_TEST

Suite *test_error_suite(void);
Suite *test_error_suite(void)
{
	Suite *const suite = suite_create("error");
	TCase *const tc = tcase_create("all");
	tcase_add_test(tc, set_gives_kind_sentence_and_minus_one);
	tcase_add_test(tc, a_long_sentence_lacks_its_middle_and_keeps_both_ends);
	tcase_add_test(tc, a_sentence_that_just_fits_is_whole);
	tcase_add_loop_test(tc, what_is_left_out_is_whole_letters, 0, 3);
	tcase_add_loop_test(
		tc, errno_gives_kind_and_reason, 0, sizeof errno_rows / sizeof errno_rows[0]);
	tcase_add_test(tc, wrap_prefixes_and_keeps_kind_and_errno);
	tcase_add_loop_test(tc, advice_replaces_the_full_stop_and_keeps_kind_and_errno, 0,
		sizeof advice_rows / sizeof advice_rows[0]);
	tcase_add_test(tc, the_request_id_stays_until_another_failure);
	tcase_add_test(tc, text_may_be_its_own_argument);
	tcase_add_loop_test(
		tc, every_kind_has_its_lower_case_name, 0, sizeof kind_rows / sizeof kind_rows[0]);
	tcase_add_test(tc, unknown_kind_has_a_name_too);
	tcase_add_test(tc, failed_assertion_aborts);
	suite_add_tcase(suite, tc);
	return suite;
}
