/* The real table must ask the system to sync: the two calls are replaced here by ones that count.
 * The disk that forgets (power_disk.h) replaces the table itself and so cannot test this. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

static int file_syncs;
static int folder_syncs;

int fdatasync(int fd)
{
	file_syncs++;
	return (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
	folder_syncs++;
	return (int)syscall(SYS_fsync, fd);
}

static char *folder;
static char path[4096];

static void set_up(void)
{
	folder = unit_scratch_make();
	snprintf(path, sizeof path, "%s/file", folder);
	file_syncs = folder_syncs = 0;
}

static void tear_down(void)
{
	unit_scratch_remove(folder);
}

static void expect(int files, int folders)
{
	ck_assert_int_eq(file_syncs, files);
	ck_assert_int_eq(folder_syncs, folders);
	file_syncs = folder_syncs = 0;
}

/* A folder needs fsync, because fdatasync may leave its names unwritten. */
START_TEST(files_and_folders_are_synced)
{
	struct error err = {0};
	const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_eq(file_sync(file_system(), fd, path, &err), 0);
	expect(1, 0);
	ck_assert_int_eq(file_sync_folder(file_system(), folder, &err), 0);
	expect(0, 1);
	ck_assert_int_eq(file_sync_name(file_system(), path, &err), 0);
	expect(0, 1);
	ck_assert_int_eq(file_publish(file_system(), path, span_text("x"), 0600, &err), 0);
	expect(1, 1);
	ck_assert_int_eq(file_place(file_system(), path, span_text("x"), 0600, &err), 0);
	expect(0, 0);
	close(fd);
}
END_TEST

START_TEST(what_the_system_refuses_is_told)
{
	struct error err = {0};
	const int fd = open(folder, O_PATH | O_CLOEXEC);
	ck_assert_int_eq(file_sync(file_system(), fd, folder, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_IO);
	close(fd);
}
END_TEST

static int refusal; /* an errno */

static int refuse(const struct file_ops *ops, int fd)
{
	(void)ops, (void)fd;
	errno = refusal;
	return -1;
}

/* Some file systems do not let folders be synced, and some folders that take files may not be
 * opened. */
START_TEST(folders_that_cannot_be_synced_are_left)
{
	static const struct {
		int refusal, result;
	} rows[] = {{EINVAL, 0}, {EACCES, 0}, {EIO, -1}};
	struct file_ops refusing = *file_system();
	refusing.fdatasync = refuse;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct error err = {0};
		refusal = rows[i].refusal;
		ck_assert_int_eq(file_try_sync_folder(&refusing, folder, &err), rows[i].result);
		ck_assert_int_eq(file_sync_folder(&refusing, folder, &err), -1);
		ck_assert_int_eq(err.os_errno, refusal);
	}
}
END_TEST

Suite *test_file_sync_suite(void);
Suite *test_file_sync_suite(void)
{
	Suite *const suite = suite_create("file_sync");
	TCase *const tests = tcase_create("file_sync");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, files_and_folders_are_synced);
	tcase_add_test(tests, what_the_system_refuses_is_told);
	tcase_add_test(tests, folders_that_cannot_be_synced_are_left);
	suite_add_tcase(suite, tests);
	return suite;
}
