#include "tests/unit/unit.h"

#include <string.h>

#include "client/remote/run_name.h"

START_TEST(a_name_gives_its_target)
{
	struct run_name name;
	struct error err = {0};
	ck_assert_int_eq(run_name_init(&name, "team--b ü/run-1.2_x", &err), 0);
	ck_assert_str_eq(name.text, "team--b ü/run-1.2_x");
	ck_assert_str_eq(name.bucket, "team--b ü");
	ck_assert_str_eq(name.run, "run-1.2_x");
	ck_assert_str_eq(name.target, "/v1/runs/team--b%20%C3%BC/run-1.2_x");
	run_name_release(&name);
	run_name_release(&name);
}
END_TEST

static const char *const REFUSED[] = {NULL, "", "bucket", "/run", "bucket/", "bucket/a/b",
	"bucket/.hidden", "bucket/-flag", "bucket/a b", "bucket/ü"};

START_TEST(other_forms_are_refused)
{
	struct run_name name;
	struct error err = {0};
	ck_assert_int_eq(run_name_init(&name, REFUSED[_i], &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BAD_NAME);
	run_name_release(&name);
}
END_TEST

START_TEST(long_names_are_refused)
{
	char text[400] = "b/";
	struct run_name name;
	struct error err = {0};
	memset(text + 2, 'x', 128);
	ck_assert_int_eq(run_name_init(&name, text, &err), 0);
	run_name_release(&name);
	text[130] = 'x';
	ck_assert_int_eq(run_name_init(&name, text, &err), -1);
	memset(text, 'b', 256);
	memcpy(text + 256, "/r", 3);
	ck_assert_int_eq(run_name_init(&name, text, &err), -1);
}
END_TEST

Suite *test_run_name_suite(void);
Suite *test_run_name_suite(void)
{
	Suite *const suite = suite_create("run_name");
	TCase *const tests = tcase_create("run_name");
	tcase_add_test(tests, a_name_gives_its_target);
	tcase_add_loop_test(tests, other_forms_are_refused, 0, sizeof REFUSED / sizeof REFUSED[0]);
	tcase_add_test(tests, long_names_are_refused);
	suite_add_tcase(suite, tests);
	return suite;
}
