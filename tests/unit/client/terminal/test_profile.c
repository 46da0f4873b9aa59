#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/terminal/profile.h"

static char *folder;
static char path[4096];

static void set_up(void)
{
	folder = unit_scratch_make();
	snprintf(path, sizeof path, "%s/made/config", folder);
}

static void tear_down(void)
{
	unit_scratch_remove(folder);
}

static void place(const char *text)
{
	struct error err = {0};
	char parent[4096];
	snprintf(parent, sizeof parent, "%s/made", folder);
	ck_assert_int_eq(file_make_folder(file_system(), parent, 0755, &err), 0);
	ck_assert_int_eq(file_place(file_system(), path, span_text(text), 0644, &err), 0);
}

static void expect_file(const char *text)
{
	struct error err = {0};
	struct buffer bytes;
	struct stat facts;
	buffer_init(&bytes, 10000);
	ck_assert_int_eq(file_read_all(path, &bytes, &err), 0);
	ck_assert_str_eq(buffer_text(&bytes), text);
	ck_assert_int_eq(stat(path, &facts), 0);
	ck_assert_int_eq(facts.st_mode & 0777, 0600);
	buffer_release(&bytes);
}

static void expect(
	const char *name, int found, const char *endpoint, const char *token, const char *ca)
{
	struct profile profile;
	struct error err = {0};
	const int result = profile_read(path, name, &profile, &err);
	ck_assert_msg(result == found, "%d: %s", result, err.text);
	ck_assert_pstr_eq(profile.endpoint, endpoint);
	ck_assert_pstr_eq(profile.token, token);
	ck_assert_pstr_eq(profile.ca, ca);
	profile_release(&profile);
}

static void put(const char *name, const char *endpoint, const char *token, const char *ca)
{
	const struct profile profile = {.endpoint = (char *)(uintptr_t)endpoint,
		.token = (char *)(uintptr_t)token,
		.ca = (char *)(uintptr_t)ca};
	struct error err = {0};
	ck_assert_msg(
		profile_write(file_system(), path, name, &profile, &err) == 0, "%s", err.text);
}

#define TWO \
	"# mine\nendpoint = http://a\n token=t=1 \r\n\n[ lab ]\nendpoint = http://lab\nca = /lab ca.pem\n[other]\ntoken = x"

START_TEST(each_profile_has_its_lines)
{
	place(TWO);
	expect(NULL, 1, "http://a", "t=1", NULL);
	expect("default", 1, "http://a", "t=1", NULL);
	expect("lab", 1, "http://lab", NULL, "/lab ca.pem");
	expect("other", 1, NULL, "x", NULL);
	expect("nobody", 0, NULL, NULL, NULL);
}
END_TEST

START_TEST(without_a_file_there_is_the_default_alone)
{
	expect(NULL, 1, NULL, NULL, NULL);
	expect("lab", 0, NULL, NULL, NULL);
}
END_TEST

START_TEST(one_profile_changes_and_the_rest_stays)
{
	place(TWO);
	put("lab", "http://new", "secret", NULL);
	expect_file(
		"# mine\nendpoint = http://a\n token=t=1 \n\n[ lab ]\nendpoint = http://new\ntoken = secret\n[other]\ntoken = x\n");
	put(NULL, "http://b", "u", "/ca");
	expect_file(
		"endpoint = http://b\ntoken = u\nca = /ca\n# mine\n\n[ lab ]\nendpoint = http://new\ntoken = secret\n[other]\ntoken = x\n");
	put("third", "http://c", "v", NULL);
	expect("third", 1, "http://c", "v", NULL);
	expect("other", 1, NULL, "x", NULL);
}
END_TEST

START_TEST(the_folder_and_a_private_file_are_made)
{
	put("lab", "http://c", "v", NULL);
	expect_file("[lab]\nendpoint = http://c\ntoken = v\n");
}
END_TEST

START_TEST(a_profile_goes_with_its_header)
{
	struct error err = {0};
	place(TWO);
	ck_assert_int_eq(profile_remove(file_system(), path, "lab", &err), 1);
	expect_file("# mine\nendpoint = http://a\n token=t=1 \n\n[other]\ntoken = x\n");
	ck_assert_int_eq(profile_remove(file_system(), path, "lab", &err), 0);
	ck_assert_int_eq(profile_remove(file_system(), path, NULL, &err), 1);
	expect_file("# mine\n\n[other]\ntoken = x\n");
	ck_assert_int_eq(profile_remove(file_system(), path, NULL, &err), 0);
}
END_TEST

static const struct {
	const char *text;
	const char *says;
} WRONG[] = {
	{"endpoint http://x\n", "line 1: this is not a `key = value` line"},
	{"\n[lab]\ncolour = red\n", "line 3: there is no key \"colour\""},
	{"[lab]\nendpoint = \n", "line 2: endpoint has no value"},
};

START_TEST(a_wrong_line_is_named_in_whichever_profile)
{
	struct profile profile;
	struct error err = {0};
	place(WRONG[_i].text);
	ck_assert_int_eq(profile_read(path, NULL, &profile, &err), -1);
	ck_assert_msg(strstr(err.text, WRONG[_i].says) != NULL, "%s", err.text);
}
END_TEST

START_TEST(names_stay_inside_of_brackets_and_folders)
{
	static const char *const bad[] = {"", "a/b", "..", ".x", "a b", "a]", "a\nb"};
	struct error err = {0};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_int_eq(profile_check_name(bad[i], &err), -1);
	ck_assert_int_eq(profile_check_name("Lab-2_x.y", &err), 0);
}
END_TEST

Suite *test_profile_suite(void);
Suite *test_profile_suite(void)
{
	Suite *const suite = suite_create("profile");
	TCase *const tests = tcase_create("profile");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, each_profile_has_its_lines);
	tcase_add_test(tests, without_a_file_there_is_the_default_alone);
	tcase_add_test(tests, one_profile_changes_and_the_rest_stays);
	tcase_add_test(tests, the_folder_and_a_private_file_are_made);
	tcase_add_test(tests, a_profile_goes_with_its_header);
	tcase_add_loop_test(tests, a_wrong_line_is_named_in_whichever_profile, 0,
		sizeof WRONG / sizeof WRONG[0]);
	tcase_add_test(tests, names_stay_inside_of_brackets_and_folders);
	suite_add_tcase(suite, tests);
	return suite;
}
