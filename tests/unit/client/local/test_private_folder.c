/* A process's own folder: what dead processes leave goes, and nothing else. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/local/folder_files.h"
#include "client/local/folder_lock.h"
#include "client/local/private_folder.h"

static char *scratch;

static void set_up(void)
{
	scratch = unit_scratch_make();
}

static void tear_down(void)
{
	unit_scratch_remove(scratch);
}

static struct private_folder make(void)
{
	struct error err = {0};
	struct private_folder folder;
	ck_assert_msg(
		private_folder_make(&folder, file_system(), scratch, &err) == 0, "%s", err.text);
	return folder;
}

static size_t count_entries(void)
{
	struct error err = {0};
	char **names;
	size_t count;
	ck_assert_int_eq(file_list(scratch, &names, &count, &err), 0);
	file_names_free(names, count);
	return count;
}

START_TEST(nobody_else_may_look_into_it_and_it_goes_with_all_that_is_in_it)
{
	struct error err = {0};
	struct stat facts;
	struct private_folder folder = make();
	ck_assert_int_eq(stat(folder.path, &facts), 0);
	ck_assert_uint_eq(facts.st_mode & 0777, 0700);
	char *const inside = folder_files_join(folder.path, "a/b");
	ck_assert_int_eq(file_make_folder(file_system(), inside, 0755, &err), 0);
	free(inside);
	private_folder_remove(&folder);
	private_folder_remove(&folder);
	ck_assert_uint_eq(count_entries(), 0);
}
END_TEST

/* Makes one and dies. */
static void leave_one(void)
{
	const pid_t child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		const struct private_folder folder = make();
		char *const inside = folder_files_join(folder.path, "weights");
		struct error err = {0};
		_exit(file_make_folder(file_system(), inside, 0700, &err) == 0 ? 0 : 1);
	}
	int status;
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(count_entries(), 1);
}

START_TEST(what_a_dead_process_left_goes_with_the_next_making)
{
	leave_one();
	struct private_folder folder = make();
	ck_assert_uint_eq(count_entries(), 1);
	private_folder_remove(&folder);
}
END_TEST

START_TEST(those_that_live_stay)
{
	struct private_folder first = make();
	struct private_folder second = make();
	ck_assert_uint_eq(count_entries(), 2);
	ck_assert(file_exists(first.path));
	private_folder_remove(&second);
	private_folder_remove(&first);
}
END_TEST

/* As one of another container is, whose processes cannot be seen. */
START_TEST(one_that_is_locked_stays_whatever_its_name_says)
{
	struct error err = {0};
	leave_one();
	char **names;
	size_t count;
	ck_assert_int_eq(file_list(scratch, &names, &count, &err), 0);
	char *const left = folder_files_join(scratch, names[0]);
	const int fd = folder_lock_enter(left, "test", &err);
	ck_assert_int_ge(fd, 0);
	struct private_folder folder = make();
	ck_assert(file_exists(left));
	private_folder_remove(&folder);
	folder_lock_leave(fd);
	file_names_free(names, count);
	free(left);
}
END_TEST

/* A process with the number of one that is dead; one that has made it and not locked it yet; what
 * others made. */
START_TEST(a_name_tells_a_process_from_a_later_one_with_its_number)
{
	struct error err = {0};
	struct private_folder mine = make();
	const char *const name = strrchr(mine.path, '/') + 1;
	char *const unlocked = folder_files_join(scratch, name);
	char early[256];
	snprintf(early, sizeof early, "%s/deltabucket-%d-1-00000000", scratch, (int)getpid());
	char *const foreign = folder_files_join(scratch, "deltabucket-of-others");
	ck_assert_int_eq(file_make_folder(file_system(), early, 0700, &err), 0);
	ck_assert_int_eq(file_make_folder(file_system(), foreign, 0700, &err), 0);
	folder_lock_leave(mine.lock_fd);
	struct private_folder next = make();
	ck_assert(!file_exists(early));
	ck_assert(file_exists(foreign));
	ck_assert(file_exists(unlocked));
	private_folder_remove(&next);
	free(mine.path);
	free(unlocked);
	free(foreign);
}
END_TEST

Suite *test_private_folder_suite(void);

Suite *test_private_folder_suite(void)
{
	Suite *const suite = suite_create("private_folder");
	TCase *const tests = tcase_create("private_folder");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, nobody_else_may_look_into_it_and_it_goes_with_all_that_is_in_it);
	tcase_add_test(tests, what_a_dead_process_left_goes_with_the_next_making);
	tcase_add_test(tests, those_that_live_stay);
	tcase_add_test(tests, one_that_is_locked_stays_whatever_its_name_says);
	tcase_add_test(tests, a_name_tells_a_process_from_a_later_one_with_its_number);
	suite_add_tcase(suite, tests);
	return suite;
}
