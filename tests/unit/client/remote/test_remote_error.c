#include "tests/unit/unit.h"

#include <string.h>

#include "client/remote/remote_error.h"

static const struct {
	int status;
	const char *body;
	enum error_kind kind;
	const char *says;
} CASES[] = {
	{404, "{\"error\":{\"code\":\"no_run\",\"message\":\"The run is not there.\"}}",
		ERROR_NO_RUN, "The run is not there."},
	{412, "{\"error\":{\"code\":\"stale_epoch\",\"message\":\"m\"}}", ERROR_STALE_EPOCH, "m"},
	{409, "{\"error\":{\"code\":\"head_moved\",\"message\":\"m\"}}", ERROR_HEAD_MOVED, "m"},
	{410, "{\"error\":{\"code\":\"collected\",\"message\":\"m\",\"anchor\":7}}",
		ERROR_COLLECTED, "m"},
	{404, "<Error><Code>NoSuchBucket</Code><Message>none</Message></Error>", ERROR_NO_BUCKET,
		"none"},
	{409, "<Error><Code>BucketAlreadyOwnedByYou</Code><Message>y</Message></Error>",
		ERROR_BUCKET_OWNED, "y"},
	{403, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>", ERROR_DENIED, "no"},
	{401, "{\"error\":{\"code\":\"a_code_of_tomorrow\",\"message\":\"m\"}}",
		ERROR_NO_CREDENTIALS, "m"},
	{503, "{\"error\":{\"code\":\"busy\",\"message\":\"full house\"}}", ERROR_UPSTREAM,
		"full house"},
	{507, "{\"error\":{\"code\":\"no_space\",\"message\":\"m\"}}", ERROR_NO_SPACE, "m"},
	{500, "", ERROR_UPSTREAM, "PUT b/k"},
	/* the disk of the server, not ours */
	{500, "{\"error\":{\"code\":\"io\",\"message\":\"m\"}}", ERROR_UPSTREAM, "m"},
	{403, "", ERROR_DENIED, "with status 403: the token's key may not do this"},
	{404, "<html>proxy page</html>", ERROR_NOT_FOUND, "status 404"},
	/* the form of the Hub face */
	{404, "{\"error\":\"Repository not found\"}", ERROR_NOT_FOUND, "Repository not found"},
	/* and of the Xet face */
	{413, "{\"error\":\"m\",\"code\":\"no_space\"}", ERROR_NO_SPACE, "m"},
	{413, "{\"error\":\"m\",\"code\":\"internal\"}", ERROR_TOO_LARGE, "m"},
	{413, "{\"error\":\"m\",\"code\":7}", ERROR_TOO_LARGE, "m"},
	{429, "{\"error\":\"m\",\"code\":\"busy\"}", ERROR_UPSTREAM, "m"},
	{418, "{\"broken", ERROR_UPSTREAM, "status 418"},
};

START_TEST(answers_become_errors)
{
	struct error err = {0};
	ck_assert_int_eq(
		remote_error_set(&err, CASES[_i].status, span_text(CASES[_i].body), "PUT b/k"), -1);
	ck_assert_msg(err.kind == CASES[_i].kind, "%s: %s", error_kind_name(err.kind), err.text);
	ck_assert_msg(strstr(err.text, CASES[_i].says) != NULL, "%s", err.text);
}
END_TEST

START_TEST(a_refused_head_says_what_it_was_about)
{
	struct error err = {0};
	remote_error_set(&err, 403, (struct span){0}, "HEAD /b/k");
	ck_assert_int_eq(err.kind, ERROR_DENIED);
	ck_assert_str_eq(err.text, "the token's key may not look at b/k (status 403)");
	remote_error_set(&err, 404, (struct span){0}, "HEAD /b/k");
	ck_assert(strstr(err.text, "HEAD /b/k with status 404") != NULL);
}
END_TEST

Suite *test_remote_error_suite(void);
Suite *test_remote_error_suite(void)
{
	Suite *const suite = suite_create("remote_error");
	TCase *const tests = tcase_create("remote_error");
	tcase_add_loop_test(tests, answers_become_errors, 0, sizeof CASES / sizeof CASES[0]);
	tcase_add_test(tests, a_refused_head_says_what_it_was_about);
	suite_add_tcase(suite, tests);
	return suite;
}
