#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "storage/packs/place_note.h"

static char *folder;
static struct error err;

static void set_up(void)
{
	err = (struct error){0};
	folder = unit_scratch_make();
}

static void tear_down(void)
{
	unit_scratch_remove(folder);
}

static void make_pack(void)
{
	char path[5000];
	snprintf(path, sizeof(path), "%s/packs/0a/0a.pack", folder);
	ck_assert_int_eq(file_make_parent(file_system(), path, 0700, &err), 0);
	ck_assert_int_eq(file_place(file_system(), path, span_text("x"), 0600, &err), 0);
}

START_TEST(a_note_keeps_the_folder_from_being_used)
{
	ck_assert_int_eq(place_note_check(folder, &err), 0);
	ck_assert_int_eq(place_note_set(NULL, folder, "s3://one/box", &err), 0);
	ck_assert_int_eq(place_note_check(folder, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_ptr_nonnull(strstr(err.text, "s3://one/box"));
}
END_TEST

START_TEST(another_place_is_refused_until_the_note_says_so)
{
	char path[5000];
	ck_assert_int_eq(place_note_set(NULL, folder, "s3://one/box", &err), 0);
	ck_assert_int_eq(place_note_set(NULL, folder, "s3://other/box", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_int_eq(place_note_check(folder, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "s3://one/box"));
	snprintf(path, sizeof(path), "%s/packs.place", folder);
	ck_assert_int_eq(
		file_publish(file_system(), path, span_text("s3://other/box\n"), 0600, &err), 0);
	ck_assert_int_eq(place_note_set(NULL, folder, "s3://other/box", &err), 0);
}
END_TEST

START_TEST(packs_in_the_folder_refuse_a_note)
{
	make_pack();
	ck_assert_int_eq(place_note_set(NULL, folder, "s3://one/box", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_int_eq(place_note_check(folder, &err), 0);
}
END_TEST

START_TEST(leftovers_do_not_refuse_what_was_noted)
{
	ck_assert_int_eq(place_note_set(NULL, folder, "s3://one/box", &err), 0);
	make_pack();
	ck_assert_int_eq(place_note_set(NULL, folder, "s3://one/box", &err), 0);
}
END_TEST

Suite *test_place_note_suite(void);
Suite *test_place_note_suite(void)
{
	Suite *const suite = suite_create("place_note");
	TCase *const tests = tcase_create("place_note");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_note_keeps_the_folder_from_being_used);
	tcase_add_test(tests, another_place_is_refused_until_the_note_says_so);
	tcase_add_test(tests, packs_in_the_folder_refuse_a_note);
	tcase_add_test(tests, leftovers_do_not_refuse_what_was_noted);
	suite_add_tcase(suite, tests);
	return suite;
}
