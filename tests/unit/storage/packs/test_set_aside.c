/* The list of files that were set aside, and their removal by the operator. */
#include "storage/packs/set_aside.h"

#include <errno.h>
#include <stdio.h>

#include "tests/unit/unit.h"

static char *folder;
static struct error err;

static void set_up(void)
{
	folder = unit_scratch_make();
	err = (struct error){0};
}

static void tear_down(void)
{
	unit_scratch_remove(folder);
}

static char path_text[8192];

static const char *path_of(const char *name)
{
	snprintf(path_text, sizeof path_text, "%s/%s", folder, name);
	return path_text;
}

static void put(const char *name, const char *text)
{
	ck_assert_int_eq(file_make_folder(file_system(), path_of("set-aside"), 0700, &err), 0);
	ck_assert_int_eq(file_place(file_system(), path_of(name), span_text(text), 0600, &err), 0);
}

START_TEST(what_lies_there_is_listed_by_name)
{
	struct set_aside aside;
	ck_assert_int_eq(set_aside_list(folder, &aside, &err), 0);
	ck_assert(aside.count == 0 && aside.bytes == 0);
	set_aside_release(&aside);
	put("set-aside/b.pack", "12345");
	put("set-aside/a.pack", "123");
	ck_assert_int_eq(set_aside_list(folder, &aside, &err), 0);
	ck_assert_uint_eq(aside.count, 2);
	ck_assert_uint_eq(aside.bytes, 8);
	ck_assert_str_eq(aside.files[0].name, "a.pack");
	ck_assert_uint_eq(aside.files[0].bytes, 3);
	ck_assert_str_eq(aside.files[1].name, "b.pack");
	ck_assert_uint_eq(aside.files[1].bytes, 5);
	set_aside_release(&aside);
}
END_TEST

START_TEST(one_goes_when_it_is_named)
{
	put("set-aside/a.pack", "123");
	put("set-aside/b.pack", "123");
	ck_assert_int_eq(set_aside_drop(file_system(), folder, "a.pack", &err), 0);
	ck_assert(!file_exists(path_of("set-aside/a.pack")) &&
		file_exists(path_of("set-aside/b.pack")));
	ck_assert_int_eq(set_aside_drop(file_system(), folder, "a.pack", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
}
END_TEST

START_TEST(no_name_leads_elsewhere)
{
	static const char *const names[] = {
		"", ".", "..", "../catalog.db", "x/../../catalog.db", "/etc/passwd", ".hidden"};
	put("catalog.db", "catalog");
	put("set-aside/.hidden", "x");
	ck_assert_int_eq(set_aside_drop(file_system(), folder, names[_i], &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert(file_exists(path_of("catalog.db")) && file_exists(path_of("set-aside/.hidden")));
}
END_TEST

START_TEST(what_cannot_be_removed_is_told)
{
	struct file_faults faults;
	put("set-aside/a.pack", "123");
	file_faults_init(&faults, FILE_FAULT_UNLINK, 0, EIO);
	ck_assert_int_eq(set_aside_drop(&faults.ops, folder, "a.pack", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_IO);
	ck_assert(file_exists(path_of("set-aside/a.pack")));
}
END_TEST

Suite *test_set_aside_suite(void);
Suite *test_set_aside_suite(void)
{
	Suite *suite = suite_create("set_aside");
	TCase *tests = tcase_create("set_aside");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, what_lies_there_is_listed_by_name);
	tcase_add_test(tests, one_goes_when_it_is_named);
	tcase_add_loop_test(tests, no_name_leads_elsewhere, 0, 7);
	tcase_add_test(tests, what_cannot_be_removed_is_told);
	suite_add_tcase(suite, tests);
	return suite;
}
