#include "tests/unit/unit.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "client/local/folder_files.h"
#include "client/local/part_file.h"

enum { SIZE = 100, ROUNDS = 10000, THREADS = 4 };

static char *folder;
static char *path;
static char *whole;
static _Atomic int finished, strays;

static void set_up(void)
{
	folder = unit_scratch_make();
	path = folder_files_join(folder, "x.part");
	whole = folder_files_join(folder, "x");
	finished = 0;
	strays = 0;
}

static void tear_down(void)
{
	free(path);
	free(whole);
	unit_scratch_remove(folder);
}

START_TEST(one_process_has_it_and_it_has_its_size)
{
	struct error err = {0};
	struct error busy = {0};
	uint64_t size;
	const int fd = part_file_open(file_system(), path, SIZE, &err);
	ck_assert_msg(fd >= 0, "%s", err.text);
	ck_assert_int_eq(part_file_open(file_system(), path, 2 * SIZE, &busy), -1);
	ck_assert_int_eq(busy.kind, ERROR_BUSY);
	ck_assert_int_eq(file_size(path, &size, &err), 0);
	ck_assert_uint_eq(size, SIZE);
	close(fd);
	const int again = part_file_open(file_system(), path, SIZE / 2, &err);
	ck_assert_int_ge(again, 0);
	ck_assert_int_eq(file_size(path, &size, &err), 0);
	ck_assert_uint_eq(size, SIZE / 2);
	close(again);
}
END_TEST

/* Like downloads, one after the other: each one that gets the part file finishes it at once. */
static void *finish_many(void *argument)
{
	(void)argument;
	for (int i = 0; i < ROUNDS; i++) {
		struct error err = {0};
		struct stat own;
		struct stat named;
		const int fd = part_file_open(file_system(), path, SIZE, &err);
		if (fd < 0)
			continue;
		if (fstat(fd, &own) != 0 || stat(path, &named) != 0 || own.st_ino != named.st_ino ||
			rename(path, whole) != 0)
			atomic_fetch_add(&strays, 1);
		atomic_fetch_add(&finished, 1);
		close(fd);
	}
	return NULL;
}

START_TEST(a_finished_file_is_no_part)
{
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, finish_many, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_gt(finished, 0);
	ck_assert_int_eq(strays, 0);
}
END_TEST

START_TEST(journals_of_both_kinds_go)
{
	static const char *const NAMES[] = {"x.part.journal", "x.part.chunks"};
	struct error err = {0};
	for (size_t i = 0; i < 2; i++) {
		char *const journal = folder_files_join(folder, NAMES[i]);
		ck_assert_int_eq(file_place(file_system(), journal, span_text("1"), 0600, &err), 0);
		part_file_remove_journals(file_system(), path);
		ck_assert(!file_exists(journal));
		free(journal);
	}
}
END_TEST

START_TEST(a_name_that_is_too_long_gets_a_short_one)
{
	char name[NAME_MAX + 2] = "a/";
	char *const usual = part_file_path("a/b", ".part");
	ck_assert_str_eq(usual, "a/b.part");
	for (size_t len = 2; len < NAME_MAX; len++) {
		strcat(name, "x");
		char *const part = part_file_path(name, ".part");
		char *const again = part_file_path(name, ".part");
		ck_assert_str_eq(part, again);
		ck_assert_int_eq(strncmp(part, "a/", 2), 0);
		ck_assert_uint_le(strlen(part + 2) + strlen(".journal"), NAME_MAX);
		ck_assert_str_eq(part + strlen(part) - 5, ".part");
		ck_assert_int_eq(
			strncmp(part, name, strlen(name)) == 0, strlen(name + 2) + 13 <= NAME_MAX);
		free(again);
		free(part);
	}
	char *const other = part_file_path(name, ".part");
	name[2] = 'y';
	char *const changed = part_file_path(name, ".part");
	ck_assert_str_ne(other, changed);
	free(changed);
	free(other);
	free(usual);
}
END_TEST

Suite *test_part_file_suite(void);
Suite *test_part_file_suite(void)
{
	Suite *const suite = suite_create("part_file");
	TCase *const tests = tcase_create("part_file");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, one_process_has_it_and_it_has_its_size);
	tcase_add_test(tests, a_finished_file_is_no_part);
	tcase_add_test(tests, journals_of_both_kinds_go);
	tcase_add_test(tests, a_name_that_is_too_long_gets_a_short_one);
	suite_add_tcase(suite, tests);
	return suite;
}
