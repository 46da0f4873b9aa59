/* Files of the server beside the store. A power cut while they are made leaves a folder that the
 * next start can use, and a file that was made once never changes. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "server/certificate.h"
#include "server/data_folder.h"
#include "tests/unit/power_disk.h"

static char *scratch;
static char *path; /* of the data folder */
static struct power_disk *disk;

static void set_up(void)
{
	scratch = unit_scratch_make();
	path = data_folder_path(scratch, "data");
	disk = power_disk_new(scratch);
}

static void tear_down(void)
{
	power_disk_free(disk);
	free(path);
	unit_scratch_remove(scratch);
}

static int open_key(const struct file_ops *files, const char *folder,
	uint8_t out_key[MASTER_KEY_BYTES], struct error *err)
{
	struct data_folder opened;
	if (data_folder_open(&opened, files, folder, NULL, true, err) != 0)
		return -1;
	memcpy(out_key, opened.master_key, MASTER_KEY_BYTES);
	data_folder_close(&opened);
	return 0;
}

/* The key of a start on the surviving files. */
static void open_survived(const char *survived, const char *what, uint8_t out_key[MASTER_KEY_BYTES])
{
	struct error err = {0};
	char *const folder = data_folder_path(survived, "data");
	ck_assert_msg(
		open_key(file_system(), folder, out_key, &err) == 0, "cut %s: %s", what, err.text);
	free(folder);
}

/* Tries all kinds of cut, because the store may have secrets sealed with the key from now on. */
static void expect_kept(const uint8_t key[MASTER_KEY_BYTES])
{
	for (enum power_cut cut = 0; cut < POWER_CUTS; cut++) {
		uint8_t found[MASTER_KEY_BYTES];
		char *const survived = power_disk_cut(disk, cut);
		open_survived(survived, "at the end", found);
		ck_assert_mem_eq(found, key, sizeof found);
		unit_scratch_remove(survived);
	}
}

START_TEST(the_master_key_outlasts_a_cut)
{
	struct error err = {0};
	uint8_t key[MASTER_KEY_BYTES];
	uint8_t found[MASTER_KEY_BYTES];
	size_t count;
	power_disk_cut_each(disk, (enum power_cut)_i);
	ck_assert_msg(open_key(power_disk_files(disk), path, key, &err) == 0, "%s", err.text);
	expect_kept(key);
	const struct power_taken *const taken = power_disk_taken(disk, &count);
	ck_assert_uint_gt(count, 0);
	for (size_t i = 0; i < count; i++)
		open_survived(taken[i].folder, taken[i].line, found);
}
END_TEST

static int fail_folder_sync(const struct file_ops *ops, int fd)
{
	struct stat facts;
	const struct file_ops *const files = power_disk_files(disk);
	(void)ops;
	if (fstat(fd, &facts) == 0 && !S_ISDIR(facts.st_mode))
		return files->fdatasync(files, fd);
	errno = EIO;
	return -1;
}

/* Such a start may have been killed when the key is in the folder but its name is not synced. */
START_TEST(a_key_from_a_start_that_broke_off_is_made_to_last)
{
	struct error err = {0};
	uint8_t key[MASTER_KEY_BYTES];
	struct file_ops broken = *power_disk_files(disk);
	broken.fdatasync = fail_folder_sync;
	ck_assert_int_eq(file_make_folder(power_disk_files(disk), path, 0700, &err), 0);
	ck_assert_int_eq(open_key(&broken, path, key, &err), -1);
	ck_assert_msg(open_key(power_disk_files(disk), path, key, &err) == 0, "%s", err.text);
	expect_kept(key);
}
END_TEST

static struct certificate *open_ca(const struct file_ops *files, const char *folder)
{
	struct error err = {0};
	const struct certificate_options options = {
		.folder = folder, .clock = clock_system(), .files = files};
	struct certificate *const certificate = certificate_open(&options, &err);
	ck_assert_msg(certificate != NULL, "%s: %s", folder, err.text);
	return certificate;
}

/* The CA in PEM, as clients get it. */
static struct buffer ca_of(const struct file_ops *files, const char *folder)
{
	struct error err = {0};
	struct buffer pem;
	struct certificate *const certificate = open_ca(files, folder);
	buffer_init(&pem, 100000);
	ck_assert_int_eq(file_read_all(certificate_ca_path(certificate), &pem, &err), 0);
	certificate_close(certificate);
	return pem;
}

static void expect_ca(const struct buffer *wanted)
{
	for (enum power_cut cut = 0; cut < POWER_CUTS; cut++) {
		char *const survived = power_disk_cut(disk, cut);
		char *const folder = data_folder_path(survived, "data");
		struct buffer found = ca_of(file_system(), folder);
		ck_assert_msg(span_equal(buffer_span(&found), buffer_span(wanted)),
			"another CA after cut %d", cut);
		buffer_release(&found);
		free(folder);
		unit_scratch_remove(survived);
	}
}

START_TEST(the_ca_outlasts_a_cut)
{
	size_t count;
	power_disk_cut_each(disk, (enum power_cut)_i);
	struct buffer pem = ca_of(power_disk_files(disk), path);
	expect_ca(&pem);
	const struct power_taken *const taken = power_disk_taken(disk, &count);
	ck_assert_uint_gt(count, 0);
	for (size_t i = 0; i < count; i++) {
		char *const folder = data_folder_path(taken[i].folder, "data");
		certificate_close(open_ca(file_system(), folder));
		free(folder);
	}
	buffer_release(&pem);
}
END_TEST

Suite *test_power_server_suite(void);
Suite *test_power_server_suite(void)
{
	Suite *const suite = suite_create("power_server");
	TCase *const tests = tcase_create("power_server");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, the_master_key_outlasts_a_cut, 0, POWER_CUTS);
	tcase_add_test(tests, a_key_from_a_start_that_broke_off_is_made_to_last);
	tcase_add_loop_test(tests, the_ca_outlasts_a_cut, 0, POWER_CUTS);
	suite_add_tcase(suite, tests);
	return suite;
}
