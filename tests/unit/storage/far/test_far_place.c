#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "storage/far/far_place.h"

static struct far_place place;
static struct error err;
static char *scratch;
static char path[4096];

static void set_up(void)
{
	err = (struct error){0};
	place = (struct far_place){.endpoint = NULL};
	unsetenv("DELTABUCKET_PACKS_KEY_ID");
	unsetenv("DELTABUCKET_PACKS_SECRET");
	scratch = unit_scratch_make();
	snprintf(path, sizeof(path), "%s/key", scratch);
}

static void tear_down(void)
{
	far_place_release(&place);
	unit_scratch_remove(scratch);
}

static void parses(const char *text, const char *endpoint, const char *bucket, const char *prefix)
{
	ck_assert_msg(far_place_parse(text, &place, &err) == 0, "%s", err.text);
	ck_assert_str_eq(place.endpoint, endpoint);
	ck_assert_str_eq(place.bucket, bucket);
	ck_assert_str_eq(place.prefix, prefix);
	far_place_release(&place);
}

START_TEST(places_have_host_bucket_and_prefix)
{
	parses("s3://s3.example/box", "https://s3.example", "box", "");
	parses("s3://s3.example:8443/box/", "https://s3.example:8443", "box", "");
	parses("s3://[::1]:7480/box/a b/c/", "https://[::1]:7480", "box", "a b/c");
	parses("s3+http://10.0.0.1:7480/box//x", "http://10.0.0.1:7480", "box", "x");
}
END_TEST

START_TEST(other_texts_are_refused)
{
	static const char *const wrong[] = {"", "s3", "/srv/packs", "http://host/box", "s3://",
		"s3://host", "s3://host/", "s3:///box", "s3://me:secret@host/box", "s3://a host/b",
		"s3://host?x/b", "S3://host/box"};
	char longest[900] = "s3://host/box/";
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ck_assert_msg(far_place_parse(wrong[i], &place, &err) == -1, "%s", wrong[i]);
		ck_assert_int_eq(err.kind, ERROR_INVALID);
		ck_assert_ptr_nonnull(strstr(err.text, "s3://HOST[:PORT]/BUCKET/PREFIX"));
		far_place_release(&place);
	}
	memset(longest + strlen(longest), 'p', 800);
	ck_assert_int_eq(far_place_parse(longest, &place, &err), -1);
}
END_TEST

static int take_from(const char *text, mode_t mode)
{
	ck_assert_int_eq(file_publish(file_system(), path, span_text(text), 0600, &err), 0);
	ck_assert_int_eq(chmod(path, mode), 0);
	far_place_release(&place);
	return far_place_take_key(&place, path, &err);
}

START_TEST(a_key_file_has_two_lines)
{
	ck_assert_int_eq(take_from("key_id = THEID\nsecret = a/b+c=d\n", 0600), 0);
	ck_assert_str_eq(place.key_id, "THEID");
	ck_assert_str_eq(place.secret, "a/b+c=d");
	ck_assert_int_eq(take_from("# mine\r\nsecret=s\r\nkey_id=k", 0400), 0);
	ck_assert_str_eq(place.key_id, "k");
	ck_assert_str_eq(place.secret, "s");
	ck_assert_int_eq(take_from("key_id = THEID\nsecret = \n", 0600), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_ptr_nonnull(strstr(err.text, "\"secret = ...\""));
	ck_assert_int_eq(take_from("key_id = THEID\nsecret = abc\n", 0640), -1);
	ck_assert_int_eq(err.kind, ERROR_DENIED);
	ck_assert_ptr_nonnull(strstr(err.text, "make it 0600"));
	ck_assert_ptr_null(strstr(err.text, "abc"));
	ck_assert_int_eq(far_place_take_key(&place, "/nowhere/key", &err), -1);
}
END_TEST

START_TEST(without_a_file_the_key_is_in_the_environment)
{
	ck_assert_int_eq(far_place_take_key(&place, NULL, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_ptr_nonnull(strstr(err.text, "packs_key_file"));
	far_place_release(&place);
	setenv("DELTABUCKET_PACKS_KEY_ID", "k", 1);
	setenv("DELTABUCKET_PACKS_SECRET", "s", 1);
	ck_assert_int_eq(far_place_take_key(&place, "", &err), 0);
	ck_assert_str_eq(place.key_id, "k");
	ck_assert_str_eq(place.secret, "s");
}
END_TEST

Suite *test_far_place_suite(void);
Suite *test_far_place_suite(void)
{
	Suite *const suite = suite_create("far_place");
	TCase *const tests = tcase_create("far_place");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, places_have_host_bucket_and_prefix);
	tcase_add_test(tests, other_texts_are_refused);
	tcase_add_test(tests, a_key_file_has_two_lines);
	tcase_add_test(tests, without_a_file_the_key_is_in_the_environment);
	suite_add_tcase(suite, tests);
	return suite;
}
