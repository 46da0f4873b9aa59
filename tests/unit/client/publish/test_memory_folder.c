/* The private folder of a publisher in memory: where it lies, who may take it away, and when it
 * goes. "memory" and "disk" are folders of the test. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/local/folder_files.h"
#include "client/publish/memory_folder.h"

static char *scratch;
static char *memory;
static char *disk;
static char said[1024];

static void memory_folder_hear(void *owner, const char *sentence, bool is_warning)
{
	(void)owner;
	(void)is_warning;
	snprintf(said, sizeof said, "%s", sentence);
}

static const struct output output = {.told = memory_folder_hear};

static void set_up(void)
{
	struct error err = {0};
	scratch = unit_scratch_make();
	memory = folder_files_join(scratch, "memory");
	disk = folder_files_join(scratch, "disk");
	said[0] = '\0';
	ck_assert_int_eq(file_make_folder(file_system(), memory, 0755, &err), 0);
	ck_assert_int_eq(file_make_folder(file_system(), disk, 0755, &err), 0);
}

static void tear_down(void)
{
	free(disk);
	free(memory);
	unit_scratch_remove(scratch);
}

static size_t count_in(const char *place)
{
	struct error err = {0};
	char **names = NULL;
	size_t count = 0;
	ck_assert_int_eq(file_list(place, &names, &count, &err), 0);
	file_names_free(names, count);
	return count;
}

static struct private_folder open_ok(uint64_t bytes)
{
	struct error err = {0};
	struct private_folder folder;
	const struct memory_places places = {memory, disk};
	ck_assert_msg(
		memory_folder_make(&folder, &places, bytes, &output, &err) == 0, "%s", err.text);
	return folder;
}

START_TEST(it_is_private_and_goes_with_its_owner)
{
	struct stat facts;
	struct error err = {0};
	struct private_folder folder = open_ok(1000);
	ck_assert_int_eq(strncmp(folder.path, memory, strlen(memory)), 0);
	ck_assert_int_eq(stat(folder.path, &facts), 0);
	ck_assert_int_eq(facts.st_mode & 07777, 0700);
	ck_assert_str_eq(said, "");
	char *const inside = folder_files_join(folder.path, "step-000001/checkpoint/config.json");
	ck_assert_int_eq(file_make_parent(file_system(), inside, 0700, &err), 0);
	ck_assert_int_eq(file_place(file_system(), inside, span_text("{}"), 0600, &err), 0);
	private_folder_remove(&folder);
	private_folder_remove(&folder);
	ck_assert_uint_eq(count_in(memory), 0);
	free(inside);
}
END_TEST

START_TEST(it_lies_on_the_disk_where_there_is_no_memory)
{
	ck_assert_int_eq(rmdir(memory), 0);
	struct private_folder folder = open_ok(1000);
	ck_assert_int_eq(strncmp(folder.path, disk, strlen(disk)), 0);
	ck_assert_ptr_ne(strstr(said, memory), NULL);
	ck_assert_ptr_ne(strstr(said, disk), NULL);
	private_folder_remove(&folder);
	ck_assert_uint_eq(count_in(disk), 0);
}
END_TEST

START_TEST(what_fits_nowhere_is_refused)
{
	struct error err = {0};
	struct private_folder folder;
	const struct memory_places places = {memory, disk};
	ck_assert_int_eq(memory_folder_make(&folder, &places, UINT64_MAX / 2, &output, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_SPACE);
	private_folder_remove(&folder);
	ck_assert_uint_eq(count_in(memory) + count_in(disk), 0);
}
END_TEST

/* Two owners in one process, and one in another, live beside each other. */
START_TEST(the_living_are_left_alone)
{
	int pipes[2];
	char byte;
	ck_assert_int_eq(pipe(pipes), 0);
	const pid_t child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		open_ok(1000);
		ck_assert_int_eq(write(pipes[1], "1", 1), 1);
		pause();
	}
	ck_assert_int_eq(read(pipes[0], &byte, 1), 1);
	struct private_folder first = open_ok(1000);
	struct private_folder second = open_ok(1000);
	ck_assert_uint_eq(count_in(memory), 3);
	private_folder_remove(&second);
	ck_assert(file_exists(first.path));
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	second = open_ok(1000);
	ck_assert_uint_eq(count_in(memory), 2); /* that of the dead is gone */
	private_folder_remove(&second);
	private_folder_remove(&first);
	ck_assert_uint_eq(count_in(memory), 0);
	close(pipes[0]);
	close(pipes[1]);
}
END_TEST

START_TEST(other_names_are_left_alone)
{
	struct error err = {0};
	char *const other = folder_files_join(memory, "deltabucket-something");
	char *const file = folder_files_join(memory, "deltabucket-1-2-3");
	ck_assert_int_eq(file_make_folder(file_system(), other, 0700, &err), 0);
	ck_assert_int_eq(file_place(file_system(), file, span_text("x"), 0600, &err), 0);
	struct private_folder folder = open_ok(1000);
	private_folder_remove(&folder);
	ck_assert(file_exists(other));
	ck_assert(file_exists(file));
	free(file);
	free(other);
}
END_TEST

Suite *test_memory_folder_suite(void);
Suite *test_memory_folder_suite(void)
{
	Suite *const suite = suite_create("memory_folder");
	TCase *const tests = tcase_create("memory_folder");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, it_is_private_and_goes_with_its_owner);
	tcase_add_test(tests, it_lies_on_the_disk_where_there_is_no_memory);
	tcase_add_test(tests, what_fits_nowhere_is_refused);
	tcase_add_test(tests, the_living_are_left_alone);
	tcase_add_test(tests, other_names_are_left_alone);
	suite_add_tcase(suite, tests);
	return suite;
}
