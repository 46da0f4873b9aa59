/* A restore can be interrupted anywhere and repeated; it refuses what is not what was backed up, and
 * folders that are not its own. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/power_disk.h"
#include "tests/unit/storage/backup_fixture.h"

enum { SMALL = BACKUP_SMALL, LARGE = BACKUP_LARGE };

static struct backup_fixture fixture;
static struct store_fixture back;
static char *folder;

static void set_up(void)
{
	backup_fixture_open(&fixture);
	backup_fixture_make(&fixture);
	folder = unit_scratch_make();
}

static void tear_down(void)
{
	unit_scratch_remove(folder);
	backup_fixture_close(&fixture);
}

static int restore(const struct file_ops *files)
{
	fixture.err = (struct error){0};
	return backup_fixture_restore(&fixture, NULL, folder, files);
}

static void expect_whole(void)
{
	backup_fixture_open_at(&back, folder);
	ck_assert(backup_fixture_holds(&back, "large", LARGE, 1) &&
		backup_fixture_holds(&back, "small", SMALL, 2));
	backup_fixture_close_at(&back);
}

/* After each operation: what is there is never taken for a store until it is one. */
START_TEST(an_interrupted_restore_is_repeated)
{
	struct file_faults faults;
	const int kinds = FILE_FAULT_WRITE | FILE_FAULT_SYNC | FILE_FAULT_RENAME |
		FILE_FAULT_UNLINK | FILE_FAULT_OPEN;
	for (int n = 0;; n += unit_stride(7)) {
		backup_fixture_shell(folder, "rm -rf ./*");
		file_faults_init(&faults, kinds, n, EIO);
		faults.sticky = true;
		if (restore(&faults.ops) == 0)
			break;
		ck_assert_msg(restore(file_system()) == 0, "%d: %s", n, fixture.err.text);
		backup_fixture_shell(folder, "test ! -e restoring && test ! -e rebuilding.db");
		if (n % 4 == 0)
			expect_whole();
	}
	expect_whole();
}
END_TEST

/* A catalog is there only when all is, and stays. */
START_TEST(a_power_cut_in_a_restore_is_harmless)
{
	size_t count;
	struct power_disk *disk = power_disk_new(folder);
	power_disk_cut_each(disk, (enum power_cut)_i);
	ck_assert_msg(restore(power_disk_files(disk)) == 0, "%s", fixture.err.text);
	power_disk_mark(disk, 1);
	power_disk_cut_now(disk, "nothing more");
	char *whole = folder;
	const struct power_taken *taken = power_disk_taken(disk, &count);
	ck_assert_uint_gt(count, 5);
	const size_t stride = (size_t)unit_stride(9);
	for (size_t i = (count - 1) % stride; i < count; i += stride) {
		char catalog[4096];
		folder = taken[i].folder;
		snprintf(catalog, sizeof(catalog), "%s/catalog.db", folder);
		ck_assert_msg(taken[i].mark == 0 || file_exists(catalog), "%s", taken[i].line);
		if (!file_exists(catalog))
			ck_assert_msg(restore(file_system()) == 0, "cut before \"%s\": %s",
				taken[i].line, fixture.err.text);
		expect_whole();
	}
	folder = whole;
	power_disk_free(disk);
}
END_TEST

START_TEST(pieces_that_are_there_are_not_fetched_again)
{
	struct file_faults faults;
	file_faults_init(
		&faults, FILE_FAULT_RENAME, 1, EIO); /* the mark, then a file of SQLite's */
	faults.sticky = true;
	ck_assert_int_eq(restore(&faults.ops), -1);
	backup_fixture_shell(folder, "test -e restoring && test ! -e catalog.db");
	backup_fixture_shell(folder,
		"f=$(find packs -name '*.pack' -size +400k); printf x | dd of=$f bs=1 seek=999 conv=notrunc status=none");
	ck_assert_int_eq(restore(file_system()), 0);
	ck_assert_uint_gt(fixture.restored.fetched, LARGE);
	ck_assert_uint_lt(fixture.restored.fetched, LARGE + SMALL);
	expect_whole();
}
END_TEST

/* Every object in turn. */
START_TEST(a_flipped_bit_is_found_and_named)
{
	char script[1000];
	char name[200] = "";
	for (int i = 0;; i++) {
		snprintf(script, sizeof(script),
			"cd %s && find packs journal moments -type f | sort | sed -n %dp",
			fixture.place, i + 1);
		FILE *listing = popen(script, "r");
		name[0] = '\0';
		if (fgets(name, sizeof(name), listing) != NULL)
			name[strcspn(name, "\n")] = '\0';
		pclose(listing);
		if (name[0] == '\0')
			break;
		snprintf(script, sizeof(script),
			"cp %s ../kept; s=$(stat -c %%s %s);"
			" printf '\\377' | dd of=%s bs=1 seek=$((s / 2)) conv=notrunc status=none;"
			" cmp -s %s ../kept && printf '\\376' | dd of=%s bs=1 seek=$((s / 2)) conv=notrunc"
			" status=none; true",
			name, name, name, name, name);
		backup_fixture_shell(fixture.place, script);
		backup_fixture_shell(folder, "rm -rf ./*");
		ck_assert_int_eq(restore(file_system()), -1);
		ck_assert_int_eq(fixture.err.kind, ERROR_CORRUPT);
		ck_assert_msg(
			strstr(fixture.err.text, name) != NULL, "%s: %s", name, fixture.err.text);
		backup_fixture_shell(folder, "test ! -e catalog.db");
		snprintf(script, sizeof(script), "mv ../kept %s", name);
		backup_fixture_shell(fixture.place, script);
	}
	ck_assert_int_eq(restore(file_system()), 0);
	expect_whole();
}
END_TEST

START_TEST(a_missing_object_is_named)
{
	backup_fixture_shell(fixture.place, "rm $(ls packs/* | head -n 1)");
	ck_assert_int_eq(restore(file_system()), -1);
	ck_assert_ptr_nonnull(strstr(fixture.err.text, "packs/"));
	ck_assert_int_eq(fixture.err.kind, ERROR_CORRUPT);
}
END_TEST

static const char *const stores[] = {"touch catalog.db", "mkdir packs", "mkdir journal",
	"touch acknowledged", "printf 20200101T000000Z-1-1 > restoring"};

START_TEST(a_folder_with_a_store_is_refused_and_left_as_it_is)
{
	backup_fixture_shell(folder, stores[_i]);
	ck_assert_int_eq(restore(file_system()), -1);
	ck_assert_int_eq(fixture.err.kind, ERROR_EXISTS);
	backup_fixture_shell(folder, "test $(find . -type f -size +100c | wc -l) = 0");
}
END_TEST

/* A restore that ended but for its mark, and whose store was used since. */
START_TEST(a_store_that_was_used_is_not_restored_over)
{
	char mark[BACKUP_MOMENT_BYTES];
	char script[200];
	ck_assert_int_eq(restore(file_system()), 0);
	backup_fixture_open_at(&back, folder);
	uint8_t *bytes = fixture_noise(SMALL, 9);
	ck_assert_int_eq(
		fixture_put(back.store, "bucket", "new", span_of(bytes, SMALL), &fixture.err), 0);
	free(bytes);
	backup_fixture_close_at(&back);
	backup_moment_print(&fixture.report.moment, mark);
	snprintf(script, sizeof(script), "printf %s > restoring", mark);
	backup_fixture_shell(folder, script);
	ck_assert_int_eq(restore(file_system()), 0);
	ck_assert(fixture.restored.was_done);
	backup_fixture_open_at(&back, folder);
	ck_assert(backup_fixture_holds(&back, "new", SMALL, 9));
	backup_fixture_close_at(&back);
	expect_whole();
}
END_TEST

START_TEST(an_older_moment_comes_back_as_it_was)
{
	struct backup_moments moments;
	backup_fixture_put(&fixture, "small", SMALL, 7);
	backup_fixture_put(&fixture, "later", SMALL, 8);
	backup_fixture_make(&fixture);
	moments = backup_fixture_moments(&fixture);
	ck_assert_uint_eq(moments.count, 2);
	ck_assert_int_eq(
		backup_fixture_restore(&fixture, &moments.items[0], folder, file_system()), 0);
	backup_moments_release(&moments);
	expect_whole();
	backup_fixture_open_at(&back, folder);
	ck_assert(!backup_fixture_holds(&back, "later", SMALL, 8));
	backup_fixture_close_at(&back);
}
END_TEST

Suite *test_restore_suite(void);
Suite *test_restore_suite(void)
{
	Suite *suite = suite_create("restore");
	TCase *tests = tcase_create("restore");
	tcase_add_unchecked_fixture(tests, backup_fixture_seed, backup_fixture_unseed);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, an_interrupted_restore_is_repeated);
	tcase_add_loop_test(tests, a_power_cut_in_a_restore_is_harmless, 0, POWER_CUTS);
	tcase_add_test(tests, pieces_that_are_there_are_not_fetched_again);
	tcase_add_test(tests, a_flipped_bit_is_found_and_named);
	tcase_add_test(tests, a_missing_object_is_named);
	tcase_add_loop_test(tests, a_folder_with_a_store_is_refused_and_left_as_it_is, 0,
		sizeof(stores) / sizeof(stores[0]));
	tcase_add_test(tests, a_store_that_was_used_is_not_restored_over);
	tcase_add_test(tests, an_older_moment_comes_back_as_it_was);
	suite_add_tcase(suite, tests);
	return suite;
}
