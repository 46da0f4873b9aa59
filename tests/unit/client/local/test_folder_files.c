#include "tests/unit/unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "client/local/folder_files.h"
#include "client/local/folder_lock.h"

static char *folder;

static void set_up(void)
{
	folder = unit_scratch_make();
}

static void tear_down(void)
{
	unit_scratch_remove(folder);
}

static void put(const char *name, const char *text)
{
	struct error err = {0};
	char *const path = folder_files_join(folder, name);
	ck_assert_int_eq(file_make_parent(file_system(), path, 0755, &err), 0);
	ck_assert_int_eq(file_publish(file_system(), path, span_text(text), 0600, &err), 0);
	free(path);
}

START_TEST(files_come_sorted_by_their_whole_name)
{
	struct folder_files files;
	struct error err = {0};
	put("b", "12");
	put("a/z", "123");
	put("a.txt", "");
	ck_assert_int_eq(folder_files_read(folder, &files, &err), 0);
	ck_assert_uint_eq(files.count, 3);
	ck_assert_str_eq(files.files[0].name, "a.txt"); /* '.' sorts before '/' */
	ck_assert_str_eq(files.files[1].name, "a/z");
	ck_assert_uint_eq(files.files[1].size, 3);
	ck_assert_str_eq(files.files[2].name, "b");
	ck_assert(file_exists(files.files[2].path));
	folder_files_release(&files);
	ck_assert_int_eq(folder_files_sync(file_system(), folder, &err), 0);
}
END_TEST

START_TEST(links_to_files_count_only_for_who_asks)
{
	struct folder_files files;
	struct error err = {0};
	put("blob", "12345");
	char *const link = folder_files_join(folder, "link");
	ck_assert_int_eq(symlink("blob", link), 0);
	ck_assert_int_eq(folder_files_read(folder, &files, &err), -1);
	ck_assert_int_eq(folder_files_read_linked(folder, 9, &files, &err), 0);
	ck_assert_uint_eq(files.count, 2);
	ck_assert_str_eq(files.files[1].name, "link");
	ck_assert_uint_eq(files.files[1].size, 5);
	folder_files_release(&files);
	ck_assert_int_eq(unlink(link), 0);
	ck_assert_int_eq(symlink(".", link), 0);
	ck_assert_int_eq(folder_files_read_linked(folder, 9, &files, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_ptr_nonnull(strstr(err.text, "link is a link to a folder"));
	ck_assert_int_eq(unlink(link), 0);
	ck_assert_int_eq(symlink("link", link), 0);
	ck_assert_int_eq(folder_files_read_linked(folder, 9, &files, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "link is a link that leads nowhere"));
	free(link);
}
END_TEST

START_TEST(an_empty_folder_has_none_and_an_absent_one_fails)
{
	struct folder_files files;
	struct error err = {0};
	ck_assert_int_eq(folder_files_read(folder, &files, &err), 0);
	ck_assert_uint_eq(files.count, 0);
	folder_files_release(&files);
	ck_assert_int_eq(folder_files_read("/nonexistent", &files, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
}
END_TEST

START_TEST(links_are_refused)
{
	struct folder_files files;
	struct error err = {0};
	char *const link = folder_files_join(folder, "link");
	ck_assert_int_eq(symlink("/etc/passwd", link), 0);
	free(link);
	ck_assert_int_eq(folder_files_read(folder, &files, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

START_TEST(depth_is_bounded)
{
	struct folder_files files;
	struct error err = {0};
	char name[256] = "d";
	for (int i = 0; i < 40; i++)
		snprintf(name + 1 + 2 * i, sizeof name - 1 - 2 * (size_t)i, "/d");
	put(name, "x");
	ck_assert_int_eq(folder_files_read(folder, &files, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

START_TEST(a_lock_is_held_by_one)
{
	struct error err = {0};
	const int fd = folder_lock_enter(folder, "worker", &err);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(folder_lock_enter(folder, "worker", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	ck_assert_int_eq(folder_lock_keep(fd, folder, "worker", &err), fd);
	folder_lock_leave(fd);
	const int again = folder_lock_keep(-1, folder, "worker", &err);
	ck_assert_int_ge(again, 0);
	folder_lock_leave(again);
}
END_TEST

/* A child that was forked while the lock was held has a copy of the descriptor. */
START_TEST(a_lock_that_was_left_is_free_beside_a_child)
{
	struct error err = {0};
	const int fd = folder_lock_enter(folder, "worker", &err);
	const pid_t child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0)
		for (;;)
			pause();
	folder_lock_leave(fd);
	const int again = folder_lock_enter(folder, "worker", &err);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ck_assert_msg(again >= 0, "%s", err.text);
	folder_lock_leave(again);
}
END_TEST

START_TEST(what_a_killed_write_left_is_removed_and_nothing_else)
{
	struct error err = {0};
	const char *const names[] = {
		"state.json", "state.json.tmp-0123456789abcdef", "other.tmp-0123456789abcdef"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char *const path = folder_files_join(folder, names[i]);
		ck_assert_int_eq(file_publish(file_system(), path, span_text("x"), 0600, &err), 0);
		free(path);
	}
	ck_assert_int_eq(
		folder_files_remove_temporary(file_system(), folder, "state.json", &err), 0);
	char **left;
	size_t count;
	ck_assert_int_eq(file_list(folder, &left, &count, &err), 0);
	ck_assert_uint_eq(count, 2);
	ck_assert_str_eq(left[0], names[2]);
	ck_assert_str_eq(left[1], names[0]);
	file_names_free(left, count);
}
END_TEST

Suite *test_folder_files_suite(void);
Suite *test_folder_files_suite(void)
{
	Suite *const suite = suite_create("folder_files");
	TCase *const tests = tcase_create("folder_files");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, files_come_sorted_by_their_whole_name);
	tcase_add_test(tests, links_to_files_count_only_for_who_asks);
	tcase_add_test(tests, an_empty_folder_has_none_and_an_absent_one_fails);
	tcase_add_test(tests, links_are_refused);
	tcase_add_test(tests, depth_is_bounded);
	tcase_add_test(tests, a_lock_is_held_by_one);
	tcase_add_test(tests, a_lock_that_was_left_is_free_beside_a_child);
	tcase_add_test(tests, what_a_killed_write_left_is_removed_and_nothing_else);
	suite_add_tcase(suite, tests);
	return suite;
}
