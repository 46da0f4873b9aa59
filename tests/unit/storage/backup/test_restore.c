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

static const char *const damages[] = {
	"s=$(stat -c %s $f); printf '\\377' | dd of=$f bs=1 seek=$((s / 2)) conv=notrunc status=none;"
	" cmp -s $f ../kept && printf '\\376' | dd of=$f bs=1 seek=$((s / 2)) conv=notrunc"
	" status=none; true",
	"truncate -s -1 $f", "rm $f", "printf x >> $f"};
enum { DAMAGES = sizeof(damages) / sizeof(damages[0]) };

/* Gives the name of an object of these kinds; false behind the last one. */
static bool find_object(const char *kinds, int number, char out[200])
{
	char script[1000];
	snprintf(script, sizeof(script), "cd %s && find %s -type f | sort | sed -n %dp",
		fixture.place, kinds, number + 1);
	FILE *listing = popen(script, "r");
	out[0] = '\0';
	if (fgets(out, 200, listing) != NULL)
		out[strcspn(out, "\n")] = '\0';
	pclose(listing);
	return out[0] != '\0';
}

static void damage(const char *name, const char *how)
{
	char script[1000];
	snprintf(script, sizeof(script), "f=%s; cp $f ../kept && { %s; }", name, how);
	backup_fixture_shell(fixture.place, script);
	backup_fixture_shell(folder, "rm -rf ./*");
}

static void undo(const char *name)
{
	char script[300];
	snprintf(script, sizeof(script), "mv ../kept %s", name);
	backup_fixture_shell(fixture.place, script);
}

/* Every object in turn. */
START_TEST(damage_of_the_journal_ends_a_restore_and_is_named)
{
	char name[200];
	for (int i = 0; find_object("journal moments", i, name); i++) {
		if (_i == 2 && name[0] == 'm')
			continue; /* there is no such moment then */
		damage(name, damages[_i]);
		ck_assert_int_eq(restore(file_system()), -1);
		ck_assert_int_eq(fixture.err.kind, ERROR_CORRUPT);
		ck_assert_msg(
			strstr(fixture.err.text, name) != NULL, "%s: %s", name, fixture.err.text);
		ck_assert_ptr_nonnull(strstr(fixture.err.text, "--moment"));
		backup_fixture_shell(folder, "test ! -e catalog.db");
		undo(name);
	}
	ck_assert_int_eq(restore(file_system()), 0);
	expect_whole();
}
END_TEST

/* All but what is damaged comes back, and lies where it was. A byte behind the others is no loss, but
 * the object is not the one that was put. */
START_TEST(a_damaged_pack_is_told_and_the_rest_comes_back)
{
	static const char *const bytes[] = {"test $(cmp -l $p $q | wc -l) = 1",
		"test $(stat -c %s $p) = $(stat -c %s $q) && test $(cmp -l $p $q | wc -l) -le 1",
		"test ! -e $q", "cmp $p $q"};
	char script[1000];
	char name[200];
	int i = 0;
	for (; find_object("packs", i, name); i++) {
		damage(name, damages[_i]);
		ck_assert_msg(restore(file_system()) == 0, "%s", fixture.err.text);
		ck_assert_uint_eq(fixture.restored.lacks.count, 1);
		ck_assert_ptr_nonnull(strstr(fixture.restored.lacks.items[0].why, name));
		snprintf(script, sizeof(script),
			"q=%s; cd %s && p=$(find $PWD -path \\*$q) && cd - && %s",
			fixture.restored.lacks.items[0].name, fixture.store.folder, bytes[_i]);
		backup_fixture_shell(folder, script);
		backup_fixture_open_at(&back, folder);
		ck_assert(backup_fixture_holds(&back, "large", LARGE, 1) ||
			backup_fixture_holds(&back, "small", SMALL, 2));
		backup_fixture_close_at(&back);
		undo(name);
	}
	ck_assert_int_ge(i, 2);
	backup_fixture_shell(folder, "rm -rf ./*");
	ck_assert_int_eq(restore(file_system()), 0);
	ck_assert_uint_eq(fixture.restored.lacks.count, 0);
	expect_whole();
}
END_TEST

/* Wherever the bit is: also where an object says whom it is encrypted to. */
START_TEST(a_damaged_pack_of_an_encrypted_backup_is_told)
{
	static const char *const places[] = {"10", "40", "120", "5000"};
	char script[300];
	char name[200];
	backup_fixture_shell(fixture.place, "rm -r ./*");
	fixture.is_sealed = true;
	backup_fixture_shell(fixture.store.folder, "rm -r backup");
	backup_fixture_make(&fixture);
	ck_assert(find_object("packs -size +400k", 0, name));
	snprintf(script, sizeof(script), "printf '\\021' | dd of=$f bs=1 seek=%s conv=notrunc status=none",
		places[_i]);
	damage(name, script);
	ck_assert_msg(restore(file_system()) == 0, "%s", fixture.err.text);
	ck_assert_uint_eq(fixture.restored.lacks.count, 1);
	backup_fixture_open_at(&back, folder);
	ck_assert(backup_fixture_holds(&back, "small", SMALL, 2));
	backup_fixture_close_at(&back);
	undo(name);
}
END_TEST

/* What an interrupted run has fetched is not fetched, and not lacking. */
START_TEST(what_is_here_is_not_lacking)
{
	struct file_faults faults;
	file_faults_init(&faults, FILE_FAULT_RENAME, 1, EIO);
	faults.sticky = true;
	ck_assert_int_eq(restore(&faults.ops), -1);
	backup_fixture_shell(fixture.place, "rm packs/*");
	ck_assert_int_eq(restore(file_system()), 0);
	ck_assert_uint_eq(fixture.restored.lacks.count, 0);
	expect_whole();
}
END_TEST

static const char *const troubles[] = {
	"f=$(ls packs/* | head -n 1) && rm $f && mkdir $f", "rm -r packs about"};
static const enum error_kind trouble_kinds[] = {ERROR_IO, ERROR_NOT_FOUND};

static struct backup_target_ops spied;
static int (*real_get)(
	struct backup_target *target, const char *name, struct buffer *out, struct error *err);
static const char *spy_script;

/* Something happens at the place as soon as the first pack is asked for. */
static int spy_get(
	struct backup_target *target, const char *name, struct buffer *out, struct error *err)
{
	if (strncmp(name, "packs/", 6) == 0 && spy_script != NULL) {
		backup_fixture_shell(fixture.place, spy_script);
		spy_script = NULL;
	}
	return real_get(target, name, out, err);
}

static int restore_while(const char *script, struct restore_report *out)
{
	struct backup_target *target =
		backup_target_open(fixture.place, false, file_system(), &fixture.err);
	struct backup_vault vault = {.identities = NULL};
	const struct restore_params params = {.vault = &vault,
		.moment = fixture.report.moment,
		.folder = folder,
		.files = file_system(),
		.promise_ms = 1};
	ck_assert_int_eq(backup_vault_find(&vault, target, &fixture.err), 0);
	spied = *target->ops;
	real_get = spied.get;
	spied.get = spy_get;
	target->ops = &spied;
	spy_script = script;
	const int result = restore_run(&params, out, &fixture.err);
	backup_target_free(target);
	return result;
}

/* A disk that went away, or may not be read, is not a pack that is damaged. */
START_TEST(trouble_with_the_place_is_not_damage)
{
	struct restore_report report;
	ck_assert_int_eq(restore_while(troubles[_i], &report), -1);
	ck_assert_msg(fixture.err.kind == trouble_kinds[_i], "%s", fixture.err.text);
	ck_assert(!report.is_gone);
	backup_fixture_shell(folder, "test -e restoring && test ! -e catalog.db");
	restore_report_release(&report);
}
END_TEST

/* The moment goes before its pieces, so the caller learns that it should take another one, which
 * goes on with what was fetched. */
START_TEST(a_moment_that_is_pruned_meanwhile_is_told)
{
	struct restore_report report;
	backup_fixture_put(&fixture, "later", LARGE, 8);
	backup_fixture_make(&fixture);
	ck_assert_int_eq(
		restore_while("rm $(ls -v moments/* | tail -n 1) $(ls packs/* | tail -n 1)", &report),
		-1);
	ck_assert(report.is_gone);
	ck_assert_int_eq(fixture.err.kind, ERROR_NOT_FOUND);
	restore_report_release(&report);
	backup_fixture_shell(folder, "test -e restoring");
	ck_assert_int_eq(restore_while(NULL, &report), -1);
	ck_assert(report.is_gone);
	restore_report_release(&report);
}
END_TEST

/* Which has a pack that the other one does not know. */
START_TEST(an_interrupted_restore_goes_on_with_another_moment)
{
	struct file_faults faults;
	backup_fixture_put(&fixture, "later", LARGE, 8);
	backup_fixture_make(&fixture);
	struct backup_moments moments = backup_fixture_moments(&fixture);
	file_faults_init(&faults, FILE_FAULT_RENAME, 1, EIO);
	faults.sticky = true;
	ck_assert_int_eq(restore(&faults.ops), -1);
	backup_fixture_shell(folder, "test -e restoring && test ! -e catalog.db");
	ck_assert_msg(backup_fixture_restore(
			      &fixture, &moments.items[0], folder, file_system()) == 0,
		"%s", fixture.err.text);
	ck_assert_uint_lt(fixture.restored.fetched, LARGE);
	ck_assert_uint_eq(fixture.restored.catalog.packs.found, 0);
	backup_moments_release(&moments);
	expect_whole();
	backup_fixture_shell(folder, "ls set-aside/*.pack && test ! -e restoring");
	backup_fixture_open_at(&back, folder);
	ck_assert(!backup_fixture_holds(&back, "later", LARGE, 8));
	backup_fixture_close_at(&back);
}
END_TEST

static const char *const stores[] = {"touch catalog.db", "mkdir packs", "mkdir journal",
	"touch acknowledged", "printf 20200101T000000Z-1-1 > restoring && touch catalog.db"};

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
	tcase_add_loop_test(tests, damage_of_the_journal_ends_a_restore_and_is_named, 0, DAMAGES);
	tcase_add_loop_test(tests, a_damaged_pack_is_told_and_the_rest_comes_back, 0, DAMAGES);
	tcase_add_loop_test(tests, a_damaged_pack_of_an_encrypted_backup_is_told, 0, 4);
	tcase_add_test(tests, what_is_here_is_not_lacking);
	tcase_add_loop_test(tests, trouble_with_the_place_is_not_damage, 0, 2);
	tcase_add_test(tests, a_moment_that_is_pruned_meanwhile_is_told);
	tcase_add_test(tests, an_interrupted_restore_goes_on_with_another_moment);
	tcase_add_loop_test(tests, a_folder_with_a_store_is_refused_and_left_as_it_is, 0,
		sizeof(stores) / sizeof(stores[0]));
	tcase_add_test(tests, a_store_that_was_used_is_not_restored_over);
	tcase_add_test(tests, an_older_moment_comes_back_as_it_was);
	suite_add_tcase(suite, tests);
	return suite;
}
