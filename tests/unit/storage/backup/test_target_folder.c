/* A folder as the place of backups: what was put is there after a power cut, whole or not at all,
 * and is what was sent. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/backup/backup_target.h"
#include "tests/unit/power_disk.h"

enum { CAP = 1 << 20 };
static const char NAME[] = "packs/a.0-6";

static char *folder;
static struct error err;

static void set_up(void)
{
	folder = unit_scratch_make();
	err = (struct error){0};
}

static void tear_down(void)
{
	unit_scratch_remove(folder);
}

static struct backup_target *open_at(const char *place, const struct file_ops *files)
{
	struct backup_target *target = backup_target_open(place, true, files, &err);
	ck_assert_msg(target != NULL, "%s", err.text);
	return target;
}

static int put(struct backup_target *target, const char *text)
{
	return target->ops->put(target, NAME, span_text(text), &err);
}

/* "" when it is not there. free() it. */
static char *get(const char *place)
{
	struct buffer found;
	struct backup_target *target = open_at(place, file_system());
	buffer_init(&found, CAP);
	if (target->ops->get(target, NAME, &found, &err) != 0)
		ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	char *text = strdup(buffer_text(&found));
	buffer_release(&found);
	backup_target_free(target);
	return text;
}

static int drop(struct backup_target *target)
{
	const int result = target->ops->remove(target, NAME, &err);
	return result == 0 ? target->ops->settle(target, "packs", &err) : result;
}

START_TEST(a_power_cut_leaves_objects_whole_or_gone)
{
	static const char *const texts[] = {"", "first!", "second", ""};
	size_t count;
	struct power_disk *disk = power_disk_new(folder);
	struct backup_target *target = open_at(folder, power_disk_files(disk));
	power_disk_cut_each(disk, (enum power_cut)_i);
	for (unsigned i = 1; i < 4; i++) {
		ck_assert_int_eq(i < 3 ? put(target, texts[i]) : drop(target), 0);
		power_disk_mark(disk, i);
	}
	power_disk_cut_now(disk, "nothing more");
	backup_target_free(target);
	const struct power_taken *taken = power_disk_taken(disk, &count);
	ck_assert_uint_gt(count, 2);
	for (size_t i = 0; i < count; i++) {
		char *found = get(taken[i].folder);
		const unsigned mark = taken[i].mark;
		ck_assert_msg(strcmp(found, texts[mark]) == 0 ||
				(mark < 3 && strcmp(found, texts[mark + 1]) == 0),
			"cut before \"%s\": \"%s\"", taken[i].line, found);
		free(found);
	}
	power_disk_free(disk);
}
END_TEST

/* A disk that keeps something else than it was given. */
static ssize_t write_wrong(
	const struct file_ops *ops, int fd, const void *data, size_t len, off_t offset)
{
	char *wrong = malloc(len);
	(void)ops;
	memcpy(wrong, data, len);
	wrong[len / 2] ^= 1;
	const ssize_t result = file_system()->pwrite(file_system(), fd, wrong, len, offset);
	free(wrong);
	return result;
}

START_TEST(what_the_disk_keeps_is_compared)
{
	struct file_ops lying = *file_system();
	lying.pwrite = write_wrong;
	struct backup_target *target = open_at(folder, &lying);
	ck_assert_int_eq(put(target, "first!"), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	backup_target_free(target);
	char *found = get(folder);
	ck_assert_str_eq(found, "");
	free(found);
}
END_TEST

static int count_object(void *taker, const struct backup_object *object, struct error *out_err)
{
	size_t *count = taker;
	(void)out_err;
	ck_assert_str_eq(object->name, NAME);
	ck_assert_uint_eq(object->bytes, 6);
	++*count;
	return 0;
}

START_TEST(only_whole_objects_are_listed)
{
	size_t count = 0;
	struct file_faults faults;
	file_faults_init(&faults, FILE_FAULT_RENAME | FILE_FAULT_UNLINK, 0, EIO);
	faults.sticky = true;
	struct backup_target *failing = open_at(folder, &faults.ops);
	ck_assert_int_eq(put(failing, "first!"), -1); /* and its file cannot be removed */
	backup_target_free(failing);
	struct backup_target *target = open_at(folder, file_system());
	ck_assert_int_eq(target->ops->list(target, "packs", count_object, &count, &err), 0);
	ck_assert_uint_eq(count, 0);
	ck_assert_int_eq(put(target, "first!"), 0);
	ck_assert_int_eq(target->ops->list(target, "packs", count_object, &count, &err), 0);
	ck_assert_uint_eq(count, 1);
	ck_assert_int_eq(target->ops->list(target, "moments", count_object, &count, &err), 0);
	ck_assert_uint_eq(count, 1);
	ck_assert_int_eq(target->ops->remove(target, NAME, &err), 0);
	ck_assert_int_eq(target->ops->remove(target, NAME, &err), 0);
	backup_target_free(target);
}
END_TEST

START_TEST(a_folder_to_restore_from_is_not_made)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/none", folder);
	ck_assert_ptr_null(backup_target_open(path, false, file_system(), &err));
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert(!file_exists(path));
}
END_TEST

Suite *test_target_folder_suite(void);
Suite *test_target_folder_suite(void)
{
	Suite *suite = suite_create("target_folder");
	TCase *tests = tcase_create("target_folder");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, a_power_cut_leaves_objects_whole_or_gone, 0, POWER_CUTS);
	tcase_add_test(tests, what_the_disk_keeps_is_compared);
	tcase_add_test(tests, only_whole_objects_are_listed);
	tcase_add_test(tests, a_folder_to_restore_from_is_not_made);
	suite_add_tcase(suite, tests);
	return suite;
}
