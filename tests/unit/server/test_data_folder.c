#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "server/data_folder.h"

static mode_t mode_of(const char *folder, const char *name)
{
	struct stat facts;
	char *const path = data_folder_path(folder, name);
	ck_assert_int_eq(stat(path, &facts), 0);
	free(path);
	return facts.st_mode & 07777;
}

static void write_file(const char *folder, const char *name, const char *text, mode_t mode)
{
	struct error err = {0};
	char *const path = data_folder_path(folder, name);
	ck_assert_int_eq(file_publish(file_system(), path, span_text(text), mode, &err), 0);
	ck_assert_int_eq(chmod(path, mode), 0);
	free(path);
}

START_TEST(a_new_folder_is_private)
{
	char *const scratch = unit_scratch_make();
	char *const path = data_folder_path(scratch, "data");
	struct data_folder folder;
	struct error err = {0};
	ck_assert_msg(data_folder_open(&folder, file_system(), path, NULL, true, &err) == 0, "%s",
		err.text);
	ck_assert_uint_eq(mode_of(scratch, "data"), 0700);
	ck_assert_uint_eq(mode_of(path, "master.key"), 0600);
	ck_assert_int_eq(folder.path[0], '/');
	data_folder_close(&folder);
	free(path);
	unit_scratch_remove(scratch);
}
END_TEST

START_TEST(the_master_key_stays_the_same)
{
	char *const path = unit_scratch_make();
	struct data_folder folder;
	struct error err = {0};
	uint8_t first[MASTER_KEY_BYTES];
	ck_assert_int_eq(data_folder_open(&folder, file_system(), path, NULL, true, &err), 0);
	memcpy(first, folder.master_key, sizeof first);
	data_folder_close(&folder);
	write_file(path, "catalog.db", "", 0600);
	ck_assert_msg(data_folder_open(&folder, file_system(), path, NULL, true, &err) == 0, "%s",
		err.text);
	ck_assert_mem_eq(first, folder.master_key, sizeof first);
	data_folder_close(&folder);
	unit_scratch_remove(path);
}
END_TEST

START_TEST(one_holder_at_a_time)
{
	char *const path = unit_scratch_make();
	struct data_folder first;
	struct data_folder second;
	struct error err = {0};
	ck_assert_int_eq(data_folder_open(&first, file_system(), path, NULL, true, &err), 0);
	ck_assert_int_eq(data_folder_open(&second, file_system(), path, NULL, true, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	char process[32];
	snprintf(process, sizeof process, "process %ld,", (long)getpid());
	ck_assert_msg(strstr(err.text, process) != NULL, "%s", err.text);
	data_folder_close(&first);
	ck_assert_int_eq(data_folder_open(&second, file_system(), path, NULL, true, &err), 0);
	data_folder_close(&second);
	unit_scratch_remove(path);
}
END_TEST

START_TEST(an_absent_folder_is_made_only_when_asked)
{
	char *const scratch = unit_scratch_make();
	char *const path = data_folder_path(scratch, "absent");
	struct data_folder folder;
	struct error err = {0};
	ck_assert_int_eq(data_folder_open(&folder, file_system(), path, NULL, false, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert(!file_exists(path));
	free(path);
	unit_scratch_remove(scratch);
}
END_TEST

/* Each alone shows that there was a store. */
static const char *const shown_by[] = {"catalog.db", "catalog.db-wal", "acknowledged"};

START_TEST(a_store_without_its_master_key_does_not_get_another)
{
	char *const path = unit_scratch_make();
	struct data_folder folder;
	struct error err = {0};
	write_file(path, shown_by[_i], "", 0600);
	ck_assert_int_eq(data_folder_open(&folder, file_system(), path, NULL, true, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_ptr_nonnull(strstr(err.text, "master.key"));
	char *const key = data_folder_path(path, "master.key");
	ck_assert(!file_exists(key));
	free(key);
	unit_scratch_remove(path);
}
END_TEST

#define GOOD_KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static const struct {
	const char *text;
	mode_t mode;
	enum error_kind kind;
} keys[] = {
	{GOOD_KEY "\n", 0600, ERROR_NONE},
	{GOOD_KEY, 0400, ERROR_NONE},
	{GOOD_KEY "\n", 0640, ERROR_NONE},
	{GOOD_KEY "\n", 0644, ERROR_DENIED},
	{GOOD_KEY "\n", 0660, ERROR_DENIED},
	{GOOD_KEY "\n\n", 0600, ERROR_CORRUPT},
	{"00010203", 0600, ERROR_CORRUPT},
	{"", 0600, ERROR_CORRUPT},
	{"zz0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", 0600, ERROR_CORRUPT},
};

START_TEST(given_master_keys)
{
	char *const path = unit_scratch_make();
	char *const key = data_folder_path(path, "elsewhere.key");
	struct data_folder folder;
	struct error err = {0};
	write_file(path, "elsewhere.key", keys[_i].text, keys[_i].mode);
	const int opened = data_folder_open(&folder, file_system(), path, key, true, &err);
	ck_assert_int_eq(err.kind, keys[_i].kind);
	if (opened == 0) {
		for (int i = 0; i < MASTER_KEY_BYTES; i++)
			ck_assert_uint_eq(folder.master_key[i], i);
		data_folder_close(&folder);
	}
	free(key);
	unit_scratch_remove(path);
}
END_TEST

static int open_nothing(const struct file_ops *files, const char *path, int flags, mode_t mode)
{
	(void)files, (void)path, (void)flags, (void)mode;
	errno = EACCES;
	return -1;
}

/* Only the table of files can refuse anything to root. Other users are refused in '/', which
 * belongs to root. */
START_TEST(a_folder_of_another_user_is_told_as_such)
{
	char *const scratch = unit_scratch_make();
	struct file_ops files = *file_system();
	struct data_folder folder;
	struct error err = {0};
	const bool is_root = geteuid() == 0;
	files.open = open_nothing;
	ck_assert_int_eq(data_folder_open(&folder, &files, scratch, NULL, true, &err), -1);
	ck_assert_ptr_null(strstr(err.text, "belongs to"));
	if (is_root)
		ck_assert_int_eq(chown(scratch, 54321, 54321), 0);
	ck_assert_int_eq(
		data_folder_open(&folder, &files, is_root ? scratch : "/", NULL, true, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DENIED);
	ck_assert_msg(strstr(err.text, "lock: Permission denied; the data folder ") != NULL, "%s",
		err.text);
	const char *const wanted = !is_root
		? " belongs to the user root, and this is the user "
		: " belongs to the user 54321, and this is the user root: run it as 54321"
		  " (sudo -u 54321) or as root";
	ck_assert_msg(strstr(err.text, wanted) != NULL, "%s", err.text);
	unit_scratch_remove(scratch);
}
END_TEST

Suite *test_data_folder_suite(void);

Suite *test_data_folder_suite(void)
{
	Suite *const suite = suite_create("data_folder");
	TCase *const tcase = tcase_create("data_folder");
	tcase_add_test(tcase, a_new_folder_is_private);
	tcase_add_test(tcase, the_master_key_stays_the_same);
	tcase_add_test(tcase, one_holder_at_a_time);
	tcase_add_test(tcase, an_absent_folder_is_made_only_when_asked);
	tcase_add_loop_test(tcase, a_store_without_its_master_key_does_not_get_another, 0,
		sizeof shown_by / sizeof shown_by[0]);
	tcase_add_test(tcase, a_folder_of_another_user_is_told_as_such);
	tcase_add_loop_test(tcase, given_master_keys, 0, sizeof keys / sizeof keys[0]);
	suite_add_tcase(suite, tcase);
	return suite;
}
