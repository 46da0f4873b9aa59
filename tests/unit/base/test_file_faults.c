#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

static char *folder;
static char path[8192];

static void set_up(void)
{
	struct error err = {0};
	folder = unit_scratch_make();
	snprintf(path, sizeof path, "%s/file", folder);
	ck_assert_int_eq(file_publish(file_system(), path, span_text("old"), 0600, &err), 0);
}

static void tear_down(void)
{
	unit_scratch_remove(folder);
}

static bool holds(const char *text)
{
	struct error err = {0};
	struct buffer content;
	buffer_init(&content, 100);
	ck_assert_int_eq(file_read_all(path, &content, &err), 0);
	const bool equal = span_equal_text(buffer_span(&content), text);
	buffer_release(&content);
	return equal;
}

/* file_publish does: open, write, sync, rename, open folder, sync folder. Before the rename the old
 * bytes stay; from it on the new ones are there. */
static const struct {
	int kinds, countdown, failure;
	enum error_kind kind;
	bool is_new;
} rows[] = {
	{FILE_FAULT_OPEN, 0, ENOSPC, ERROR_NO_SPACE, false},
	{FILE_FAULT_WRITE, 0, ENOSPC, ERROR_NO_SPACE, false},
	{FILE_FAULT_SYNC, 0, EIO, ERROR_IO, false},
	{FILE_FAULT_RENAME, 0, EIO, ERROR_IO, false},
	{FILE_FAULT_OPEN, 1, EACCES, ERROR_DENIED, true},
	{FILE_FAULT_SYNC, 1, EIO, ERROR_IO, true},
};

START_TEST(failed_publish_leaves_old_or_new_and_no_rest)
{
	struct file_faults faults;
	struct error err = {0};
	char **names;
	size_t count;
	file_faults_init(&faults, rows[_i].kinds, rows[_i].countdown, rows[_i].failure);
	ck_assert_int_eq(file_publish(&faults.ops, path, span_text("new"), 0600, &err), -1);
	ck_assert_int_eq(err.kind, rows[_i].kind);
	ck_assert_int_eq(err.os_errno, rows[_i].failure);
	ck_assert(holds(rows[_i].is_new ? "new" : "old"));
	ck_assert_int_eq(file_list(folder, &names, &count, &err), 0);
	ck_assert_uint_eq(count, 1);
	file_names_free(names, count);
	ck_assert_int_eq(file_publish(&faults.ops, path, span_text("newer"), 0600, &err), 0);
}
END_TEST

START_TEST(killed_publish_leaves_old_or_new)
{
	struct error err = {0};
	const pid_t child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		struct file_faults faults;
		file_faults_init(&faults, rows[_i].kinds, rows[_i].countdown, 0);
		faults.kill = true;
		file_publish(&faults.ops, path, span_text("new"), 0600, &err);
		_exit(0);
	}
	int status = 0;
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	ck_assert(holds(rows[_i].is_new ? "new" : "old"));
}
END_TEST

START_TEST(volatile_files_are_not_synced)
{
	struct error err = {0};
	struct file_faults faults;
	file_faults_init(&faults, FILE_FAULT_SYNC, 0, EIO);
	faults.sticky = true;
	faults.ops.is_volatile = true;
	ck_assert_int_eq(file_publish(&faults.ops, path, span_text("new"), 0600, &err), 0);
	ck_assert(holds("new"));
	faults.ops.is_volatile = false;
	ck_assert_int_eq(file_publish(&faults.ops, path, span_text("newer"), 0600, &err), -1);
}
END_TEST

START_TEST(fuse_blows_once_unless_sticky)
{
	struct file_faults faults;
	const struct file_ops *const ops = &faults.ops;
	const int fd = open(path, O_RDWR);
	file_faults_init(&faults, FILE_FAULT_WRITE, 2, EIO);
	ck_assert_int_eq(ops->pwrite(ops, fd, "1", 1, 0), 1);
	ck_assert_int_eq(ops->fdatasync(ops, fd), 0);
	ck_assert_int_eq(ops->ftruncate(ops, fd, 1), 0);
	errno = 0;
	ck_assert_int_eq(ops->pwrite(ops, fd, "2", 1, 0), -1);
	ck_assert_int_eq(errno, EIO);
	ck_assert_int_eq(ops->pwrite(ops, fd, "3", 1, 0), 1);
	ck_assert(holds("3"));
	file_faults_init(&faults, FILE_FAULT_WRITE | FILE_FAULT_UNLINK, 0, EROFS);
	faults.sticky = true;
	ck_assert_int_eq(ops->pwrite(ops, fd, "4", 1, 0), -1);
	ck_assert_int_eq(ops->ftruncate(ops, fd, 0), -1);
	ck_assert_int_eq(ops->unlink(ops, path), -1);
	ck_assert_int_eq(errno, EROFS);
	ck_assert(holds("3"));
	close(fd);
}
END_TEST

/* Making a name counts as an open, removing a folder as an unlink. */
START_TEST(names_fail_with_their_kinds)
{
	struct file_faults faults;
	const struct file_ops *const ops = &faults.ops;
	char other[8200];
	snprintf(other, sizeof other, "%s.other", path);
	file_faults_init(&faults, FILE_FAULT_OPEN | FILE_FAULT_UNLINK, 0, EROFS);
	faults.sticky = true;
	ck_assert_int_eq(ops->mkdir(ops, other, 0700), -1);
	ck_assert_int_eq(ops->link(ops, path, other), -1);
	ck_assert_int_eq(ops->symlink(ops, path, other), -1);
	ck_assert(!file_exists(other));
	faults.kinds = FILE_FAULT_UNLINK;
	ck_assert_int_eq(ops->mkdir(ops, other, 0700), 0);
	ck_assert_int_eq(ops->rmdir(ops, other), -1);
	ck_assert_int_eq(errno, EROFS);
	faults.kinds = FILE_FAULT_OPEN;
	ck_assert_int_eq(ops->rmdir(ops, other), 0);
	faults.kinds = 0;
	ck_assert_int_eq(ops->link(ops, path, other), 0);
	ck_assert_int_eq(ops->unlink(ops, other), 0);
	ck_assert_int_eq(ops->symlink(ops, path, other), 0);
}
END_TEST

Suite *test_file_faults_suite(void);
Suite *test_file_faults_suite(void)
{
	Suite *const suite = suite_create("file_faults");
	TCase *const tc = tcase_create("all");
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_loop_test(
		tc, failed_publish_leaves_old_or_new_and_no_rest, 0, sizeof rows / sizeof rows[0]);
	tcase_add_loop_test(tc, killed_publish_leaves_old_or_new, 0, sizeof rows / sizeof rows[0]);
	tcase_add_test(tc, volatile_files_are_not_synced);
	tcase_add_test(tc, fuse_blows_once_unless_sticky);
	tcase_add_test(tc, names_fail_with_their_kinds);
	suite_add_tcase(suite, tc);
	return suite;
}
