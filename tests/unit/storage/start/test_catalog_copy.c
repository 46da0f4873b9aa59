/* Copies of the catalog in memory: a copy is whole or absent, and copies that killed processes left
 * are removed. */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "storage/start/catalog_copy.h"

enum { PATH_BYTES = 4096 };

static char *scratch;
static char catalog[PATH_BYTES];
static char place[PATH_BYTES]; /* where copies are made */
static char prefix[NAME_MAX];  /* of their names */
static struct error err;

static void write_file(const char *path, const char *text)
{
	ck_assert_int_eq(file_place(file_system(), path, span_text(text), 0600, &err), 0);
}

static void expect_file(const char *path, const char *text)
{
	struct buffer bytes;
	buffer_init(&bytes, 1000);
	ck_assert_msg(file_read_all(path, &bytes, &err) == 0, "%s", err.text);
	ck_assert(span_equal_text(buffer_span(&bytes), text));
	buffer_release(&bytes);
}

static struct catalog_copy *make(void)
{
	struct catalog_copy *copy = catalog_copy_make(file_system(), catalog, &err);
	ck_assert_msg(copy != NULL, "%s", err.text);
	return copy;
}

/* PLACE/PREFIX-NUMBER/catalog.db */
static void learn_names(const struct catalog_copy *copy)
{
	snprintf(place, sizeof place, "%s", catalog_copy_path(copy));
	*strrchr(place, '/') = '\0';
	char *name = strrchr(place, '/');
	snprintf(prefix, sizeof prefix, "%.*s", (int)(strrchr(name, '-') - name), name + 1);
	*name = '\0';
}

static unsigned count_copies(void)
{
	unsigned count = 0;
	DIR *folder = opendir(place);
	ck_assert_ptr_nonnull(folder);
	for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
		count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
	closedir(folder);
	return count;
}

static void set_up(void)
{
	char path[PATH_BYTES + 16];
	err = (struct error){0};
	scratch = unit_scratch_make();
	snprintf(catalog, sizeof catalog, "%s/catalog.db", scratch);
	snprintf(path, sizeof path, "%s-wal", catalog);
	write_file(catalog, "the catalog");
	write_file(path, "its log");
	struct catalog_copy *copy = make();
	learn_names(copy);
	catalog_copy_free(copy);
}

static void tear_down(void)
{
	ck_assert_uint_eq(count_copies(), 0);
	unit_scratch_remove(scratch);
}

START_TEST(a_copy_is_there_until_it_is_freed)
{
	char path[PATH_BYTES + 16];
	struct stat state;
	struct catalog_copy *copy = make();
	snprintf(path, sizeof path, "%s-wal", catalog_copy_path(copy));
	expect_file(catalog_copy_path(copy), "the catalog");
	expect_file(path, "its log");
	ck_assert_uint_eq(count_copies(), 1);
	*strrchr(path, '/') = '\0';
	ck_assert_int_eq(stat(path, &state), 0);
	/* it contains keys, and all users may enter the place */
	ck_assert_uint_eq(state.st_mode & 0777, 0700);
	catalog_copy_free(copy);
	catalog_copy_free(NULL);
}
END_TEST

START_TEST(a_copy_that_fails_leaves_nothing)
{
	int n = 0;
	for (bool fails = true; fails; n++) {
		struct file_faults faults;
		file_faults_init(&faults, FILE_FAULT_OPEN, n, ENOSPC);
		struct catalog_copy *copy = catalog_copy_make(&faults.ops, catalog, &err);
		fails = copy == NULL;
		ck_assert_uint_eq(count_copies(), !fails);
		catalog_copy_free(copy);
	}
	ck_assert_int_gt(n, 3);
}
END_TEST

static uint64_t free_bytes;

static int little_space(const struct file_ops *ops, const char *where, struct file_space *out)
{
	(void)ops, (void)where;
	*out = (struct file_space){.free = free_bytes, .all = 1 << 20};
	return 0;
}

/* The space for catalog and log, twice. */
START_TEST(a_copy_that_would_not_fit_twice_is_not_made)
{
	struct file_ops files = *file_system();
	files.space = little_space;
	free_bytes = 2 * (strlen("the catalog") + strlen("its log") + 1);
	catalog_copy_free(catalog_copy_make(&files, catalog, &err));
	ck_assert_int_eq(err.kind, ERROR_NONE);
	free_bytes -= 2;
	ck_assert_ptr_null(catalog_copy_make(&files, catalog, &err));
	ck_assert_int_eq(err.kind, ERROR_NO_SPACE);
}
END_TEST

START_TEST(a_copy_that_a_killed_process_left_goes_and_one_in_use_stays)
{
	struct catalog_copy *used = make();
	pid_t child = fork();
	if (child == 0) {
		struct error ignored;
		_exit(catalog_copy_make(file_system(), catalog, &ignored) != NULL ? 0 : 1);
	}
	int status = 1;
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(count_copies(), 2);
	struct catalog_copy *next = make();
	ck_assert_uint_eq(count_copies(), 2);
	expect_file(catalog_copy_path(used), "the catalog");
	expect_file(catalog_copy_path(next), "the catalog");
	catalog_copy_free(used);
	catalog_copy_free(next);
}
END_TEST

/* A link with such a name, and a folder that others may write to, are not copies of this user. */
START_TEST(what_others_put_there_is_not_followed)
{
	char victim[PATH_BYTES];
	char file[PATH_BYTES + 16];
	char link[2 * PATH_BYTES];
	char folder[2 * PATH_BYTES];
	snprintf(victim, sizeof victim, "%s/victim", scratch);
	snprintf(file, sizeof file, "%s/catalog.db", victim);
	snprintf(link, sizeof link, "%s/%s-link01", place, prefix);
	snprintf(folder, sizeof folder, "%s/%s-open01", place, prefix);
	ck_assert_int_eq(mkdir(victim, 0700), 0);
	write_file(file, "precious");
	ck_assert_int_eq(symlink(victim, link), 0);
	ck_assert_int_eq(mkdir(folder, 0700), 0);
	ck_assert_int_eq(chmod(folder, 0777), 0);
	catalog_copy_free(make());
	expect_file(file, "precious");
	ck_assert_uint_eq(count_copies(), 2);
	ck_assert_int_eq(unlink(link), 0);
	ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

Suite *test_catalog_copy_suite(void);
Suite *test_catalog_copy_suite(void)
{
	Suite *suite = suite_create("catalog_copy");
	TCase *tests = tcase_create("catalog_copy");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_copy_is_there_until_it_is_freed);
	tcase_add_test(tests, a_copy_that_fails_leaves_nothing);
	tcase_add_test(tests, a_copy_that_would_not_fit_twice_is_not_made);
	tcase_add_test(tests, a_copy_that_a_killed_process_left_goes_and_one_in_use_stays);
	tcase_add_test(tests, what_others_put_there_is_not_followed);
	suite_add_tcase(suite, tests);
	return suite;
}
