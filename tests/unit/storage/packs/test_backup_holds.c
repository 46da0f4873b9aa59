/* Holds of backups: they outlive the process, end when they are told to or after a day, and a file
 * that cannot be read counts as one. */
#include "storage/packs/backup_holds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static char *folder;
static char path[4096];
static struct clock_fake clock;
static struct backup_holds *holds;
static struct backup_hold hold;
static struct error err;

static void open_holds(const struct file_ops *files)
{
	backup_holds_free(holds);
	holds = backup_holds_new(files, folder, &clock.source, NULL);
}

static void set_up(void)
{
	folder = unit_scratch_make();
	snprintf(path, sizeof(path), "%s/backup-holds", folder);
	clock_fake_init(&clock, 1000 * 1000);
	err = (struct error){0};
	open_holds(file_system());
}

static void tear_down(void)
{
	backup_holds_free(holds);
	holds = NULL;
	unit_scratch_remove(folder);
}

static void take(const char *name)
{
	ck_assert_msg(backup_holds_take(holds, name, &hold, &err) == 0, "%s", err.text);
}

START_TEST(a_hold_outlives_the_process_and_ends_when_it_is_told)
{
	ck_assert(!backup_holds_any(holds));
	take("nightly");
	open_holds(file_system());
	ck_assert(backup_holds_any(holds));
	ck_assert_int_eq(backup_holds_end(holds, hold.id, &err), 0);
	ck_assert(!backup_holds_any(holds));
	open_holds(file_system());
	ck_assert(!backup_holds_any(holds));
	ck_assert_int_eq(backup_holds_end(holds, hold.id, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
}
END_TEST

START_TEST(a_hold_ends_after_a_day_and_the_backup_learns_it)
{
	take("nightly");
	clock.now_ms += BACKUP_HOLD_MS - 1;
	ck_assert(backup_holds_any(holds));
	clock.now_ms++;
	ck_assert(!backup_holds_any(holds));
	ck_assert_int_eq(backup_holds_end(holds, hold.id, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "24 hours"));
	open_holds(file_system());
	ck_assert(!backup_holds_any(holds));
}
END_TEST

START_TEST(a_hold_of_a_clock_that_was_set_back_ends)
{
	clock.now_ms += (int64_t)400 * BACKUP_HOLD_MS;
	take("nightly");
	clock.now_ms = 1000 * 1000;
	ck_assert(!backup_holds_any(holds));
}
END_TEST

START_TEST(a_backup_takes_the_place_of_one_of_its_name_only)
{
	struct backup_hold listed[BACKUP_HOLDS_MAX];
	take("a");
	const struct backup_hold first = hold;
	take("b");
	take("a");
	ck_assert_uint_eq(backup_holds_list(holds, listed), 2);
	ck_assert_str_eq(listed[0].name, "b");
	ck_assert_int_eq(backup_holds_end(holds, first.id, &err), -1);
	ck_assert_int_eq(backup_holds_end(holds, listed[0].id, &err), 0);
	ck_assert(backup_holds_any(holds));
	ck_assert_int_eq(backup_holds_end(holds, hold.id, &err), 0);
	ck_assert(!backup_holds_any(holds));
}
END_TEST

static const char *const bad_names[] = {"", "a b", "a\nb", "a/b",
	"12345678901234567890123456789012345678901234567890123456789012345"};

START_TEST(a_name_that_would_break_the_file_is_refused)
{
	ck_assert_int_eq(backup_holds_take(holds, bad_names[_i], &hold, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert(!backup_holds_any(holds));
}
END_TEST

START_TEST(there_are_only_so_many)
{
	char name[8];
	for (int i = 0; i < BACKUP_HOLDS_MAX; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		take(name);
	}
	ck_assert_int_eq(backup_holds_take(holds, "more", &hold, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	open_holds(file_system());
	take("n3");
}
END_TEST

static void flip(off_t at)
{
	FILE *file = fopen(path, "r+");
	fseek(file, at, SEEK_SET);
	const int was = fgetc(file);
	fseek(file, at, SEEK_SET);
	fputc(was ^ 1, file);
	fclose(file);
}

START_TEST(a_file_that_cannot_be_read_holds_for_a_day)
{
	uint64_t bytes;
	take("nightly");
	ck_assert_int_eq(file_size(path, &bytes, &err), 0);
	for (uint64_t i = 0; i < bytes; i++) {
		flip((off_t)i);
		open_holds(file_system());
		ck_assert_msg(backup_holds_any(holds), "byte %d", (int)i);
		ck_assert_int_eq(backup_holds_end(holds, hold.id, &err), -1);
		flip((off_t)i);
	}
	for (uint64_t i = bytes; i-- > 0;) {
		ck_assert_int_eq(truncate(path, (off_t)i), 0);
		open_holds(file_system());
		ck_assert_msg(backup_holds_any(holds), "cut at %d", (int)i);
	}
	clock.now_ms += BACKUP_HOLD_MS;
	ck_assert(!backup_holds_any(holds));
}
END_TEST

START_TEST(a_hold_that_cannot_be_written_is_none)
{
	struct file_faults faults;
	for (int i = 0; i < 4; i++) {
		file_faults_init(&faults,
			FILE_FAULT_WRITE | FILE_FAULT_SYNC | FILE_FAULT_RENAME | FILE_FAULT_OPEN, i,
			EIO);
		open_holds(&faults.ops);
		ck_assert_int_eq(backup_holds_take(holds, "nightly", &hold, &err), -1);
		ck_assert(!backup_holds_any(holds));
	}
}
END_TEST

/* It holds in this process; the next one knows nothing of it, and the backup learns that. */
START_TEST(a_full_disk_holds_as_long_as_the_process)
{
	struct file_faults faults;
	file_faults_init(&faults, FILE_FAULT_OPEN, 0, _i == 0 ? ENOSPC : EROFS);
	faults.sticky = true;
	open_holds(&faults.ops);
	ck_assert_int_eq(backup_holds_take(holds, "a", &hold, &err), -1);
	ck_assert(!backup_holds_any(holds));
	ck_assert_int_eq(backup_holds_take_here(holds, "a", &hold, &err), 0);
	ck_assert(backup_holds_any(holds));
	ck_assert_int_eq(backup_holds_end(holds, hold.id, &err), 0);
	ck_assert(!backup_holds_any(holds));
	ck_assert_int_eq(backup_holds_take_here(holds, "a", &hold, &err), 0);
	open_holds(file_system());
	ck_assert(!backup_holds_any(holds));
	ck_assert_int_eq(backup_holds_end(holds, hold.id, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
}
END_TEST

Suite *test_backup_holds_suite(void);
Suite *test_backup_holds_suite(void)
{
	Suite *suite = suite_create("backup_holds");
	TCase *tests = tcase_create("backup_holds");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_hold_outlives_the_process_and_ends_when_it_is_told);
	tcase_add_test(tests, a_hold_ends_after_a_day_and_the_backup_learns_it);
	tcase_add_test(tests, a_hold_of_a_clock_that_was_set_back_ends);
	tcase_add_test(tests, a_backup_takes_the_place_of_one_of_its_name_only);
	tcase_add_loop_test(tests, a_name_that_would_break_the_file_is_refused, 0,
		sizeof(bad_names) / sizeof(bad_names[0]));
	tcase_add_test(tests, there_are_only_so_many);
	tcase_add_test(tests, a_file_that_cannot_be_read_holds_for_a_day);
	tcase_add_test(tests, a_hold_that_cannot_be_written_is_none);
	tcase_add_loop_test(tests, a_full_disk_holds_as_long_as_the_process, 0, 2);
	suite_add_tcase(suite, tests);
	return suite;
}
