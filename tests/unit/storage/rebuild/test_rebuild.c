/* A catalog made again from the journal is the one that was lost: every table has the same counts and
 * sums, and numbers go on where they were. Power cuts between any two operations, of the store
 * before and of the rebuild itself, leave a journal that leads to a catalog whose content is
 * there. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "storage/db/db_sums.h"
#include "storage/journal/journal.h"
#include "storage/open/store_open.h"
#include "storage/rebuild/rebuild.h"
#include "storage/upkeep/gc.h"
#include "tests/unit/power_disk.h"
#include "tests/unit/storage/store_fixture.h"

enum { INLINE = 300, SMALL = 20000, LARGE = 500000, KEYS = 8, HOUR_MS = 3600 * 1000, ARENA = 1 << 26 };

/* Made once for all tests: a closed store with content and a snapshot, and the folder of one whose
 * process was killed. */
static char *closed;
static char *killed;
static struct store_fixture fixture;
static struct error err;

static void put(struct store *store, const char *key, size_t size, uint64_t seed)
{
	uint8_t *bytes = fixture_noise(size, seed);
	ck_assert_msg(
		fixture_put(store, "bucket", key, span_of(bytes, size), &err) == 0, "%s", err.text);
	free(bytes);
}

static void key_name(char out[16], unsigned number)
{
	snprintf(out, 16, "key%u", number);
}

static void await_snapshot(const char *folder)
{
	char command[600];
	snprintf(command, sizeof(command), "ls %s/journal/*.snapshot >/dev/null 2>&1", folder);
	for (int i = 0; i < 600 && system(command) != 0; i++)
		usleep(50 * 1000);
	ck_assert_int_eq(system(command), 0);
}

static void make_all(void)
{
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	put(fixture.store, "dead", LARGE, 1000);
	put(fixture.store, "alive", LARGE, 1001);
	await_snapshot(fixture.folder);
	for (unsigned i = 0; i < KEYS; i++) {
		char name[16];
		key_name(name, i);
		put(fixture.store, name, SMALL, i);
	}
	put(fixture.store, "key0", SMALL, 100);
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "key1", NULL, &err), 0);
	killed = unit_scratch_copy(fixture.folder);
	store_fixture_stop(&fixture);
	closed = unit_scratch_copy(fixture.folder);
	store_fixture_close(&fixture);
}

static void remove_all(void)
{
	unit_scratch_remove(closed);
	unit_scratch_remove(killed);
}

static void run(const char *folder, const char *script)
{
	char command[2000];
	snprintf(command, sizeof(command), "cd %s && %s", folder, script);
	ck_assert_msg(system(command) == 0, "%s", command);
}

static int rebuild_on(const struct file_ops *files, const char *folder, struct rebuild_report *out)
{
	const struct rebuild_params params = {
		.folder = folder, .files = files, .promise_ms = HOUR_MS};
	err = (struct error){0};
	return rebuild_run(&params, out, &err);
}

static int rebuild(const char *folder, struct rebuild_report *out)
{
	return rebuild_on(file_system(), folder, out);
}

static void open_store(struct store_fixture *left, char *folder, const char *what)
{
	const struct store_options options = {.folder = folder, .pack_max_bytes = 1024 * 1024};
	*left = (struct store_fixture){.folder = folder, .arena = arena_new(ARENA)};
	left->store = store_open(&options, &err);
	ck_assert_msg(left->store != NULL, "%s: %s", what, err.text);
	fixture_await_start(left->store);
}

static void close_store(struct store_fixture *left)
{
	store_close(left->store);
	arena_free(left->arena);
}

static bool holds(struct store_fixture *left, const char *key, size_t size, uint64_t seed)
{
	uint8_t *bytes = fixture_noise(size, seed);
	const bool result = fixture_holds(left, "bucket", key, span_of(bytes, size));
	free(bytes);
	return result;
}

static bool is_named(struct store_fixture *left, const char *key)
{
	struct object object;
	err = (struct error){0};
	if (fixture_find(left, "bucket", key, &object, &err) == 0)
		return true;
	ck_assert_msg(err.kind == ERROR_NO_KEY, "%s: %s", key, err.text);
	return false;
}

static void expect_content(struct store_fixture *left, const char *what)
{
	ck_assert_msg(!is_named(left, "key1"), "%s", what);
	ck_assert_msg(holds(left, "key0", SMALL, 100), "%s", what);
	ck_assert_msg(
		holds(left, "dead", LARGE, 1000) && holds(left, "alive", LARGE, 1001), "%s", what);
	for (unsigned i = 2; i < KEYS; i++) {
		char name[16];
		key_name(name, i);
		ck_assert_msg(holds(left, name, SMALL, i), "%s: %s", what, name);
	}
}

/* What all tables add up to, and the number of the last version. (The numbers of packs are no measure: an
 * update of a pack's row takes one, too.) free() it. */
static char *look_at(const char *folder)
{
	char path[600];
	struct table_sums *sums = memory_new(sizeof(*sums));
	char *text = memory_new(200);
	int64_t next = 0;
	snprintf(path, sizeof(path), "%s/catalog.db", folder);
	struct db *db = db_open(path, DB_READ, &err);
	ck_assert_msg(db != NULL && db_sums_load(db, sums, &err) == 0, "%s", err.text);
	ck_assert_int_eq(db_find_i64(db, "SELECT seq FROM sqlite_sequence WHERE name = 'versions'",
				 &next, &err),
		1);
	snprintf(text, 200, "sums %llx, versions %lld", (unsigned long long)table_sums_total(sums),
		(long long)next);
	db_close(db);
	free(sums);
	return text;
}

START_TEST(the_catalog_is_the_one_that_was_lost)
{
	char *folder = unit_scratch_copy(_i == 0 ? closed : killed);
	struct rebuild_report report;
	struct store_fixture left;
	char *before = look_at(folder);
	run(folder, "rm catalog.db*");
	ck_assert_msg(rebuild(folder, &report) == 0, "%s", err.text);
	char *now = look_at(folder);
	ck_assert_str_eq(now, before);
	ck_assert_uint_eq(report.packs.missing, 0);
	ck_assert_uint_eq(report.packs.found + report.packs.grown, 0);
	ck_assert_int_eq(report.objects, KEYS + 1);
	ck_assert_int_gt((int64_t)report.way.records, 0);
	ck_assert_str_eq(report.way.gap, "");
	open_store(&left, folder, "the rebuilt one");
	expect_content(&left, "the rebuilt one");
	close_store(&left);
	free(before);
	free(now);
	unit_scratch_remove(folder);
}
END_TEST

START_TEST(a_store_goes_on_and_can_be_rebuilt_again)
{
	char *folder = unit_scratch_copy(killed);
	struct rebuild_report report;
	struct store_fixture left;
	for (int round = 0; round < 3; round++) {
		run(folder, "rm catalog.db*");
		ck_assert_msg(rebuild(folder, &report) == 0, "%s", err.text);
		ck_assert_int_eq(report.acknowledged > report.way.end.change, false);
		ck_assert_str_eq(report.way.gap, "");
		open_store(&left, folder, "a round");
		expect_content(&left, "a round");
		ck_assert(round == 0 || holds(&left, "more", SMALL, 499 + (uint64_t)round));
		put(left.store, "more", SMALL, 500 + (uint64_t)round);
		close_store(&left);
	}
	open_store(&left, folder, "the last");
	ck_assert(holds(&left, "more", SMALL, 502));
	close_store(&left);
	unit_scratch_remove(folder);
}
END_TEST

START_TEST(a_catalog_that_is_there_is_refused_or_set_aside)
{
	char *folder = unit_scratch_copy(closed);
	struct rebuild_report report;
	struct store_fixture left;
	struct rebuild_params params = {
		.folder = folder, .files = file_system(), .promise_ms = HOUR_MS};
	ck_assert_int_eq(rebuild_run(&params, &report, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
	params.replaces = true;
	ck_assert_msg(rebuild_run(&params, &report, &err) == 0, "%s", err.text);
	run(folder, "test -s set-aside/catalog.db && test ! -e rebuilding.db");
	ck_assert_int_eq(rebuild_run(&params, &report, &err), 0);
	run(folder, "test -s set-aside/catalog.db.1");
	open_store(&left, folder, "replaced");
	expect_content(&left, "replaced");
	close_store(&left);
	unit_scratch_remove(folder);
}
END_TEST

START_TEST(a_journal_that_leads_elsewhere_makes_nothing)
{
	char *folder = unit_scratch_copy(killed);
	struct rebuild_report report;
	struct rebuild_params params = {
		.folder = folder, .files = file_system(), .promise_ms = HOUR_MS, .lives = 1000};
	run(folder, "rm catalog.db*");
	ck_assert_int_eq(rebuild(folder, &report), 0);
	const int64_t change = report.way.end.change;
	run(folder, "rm -r catalog.db* journal");
	char script[700];
	snprintf(script, sizeof(script), "cp -r %s/journal .", killed);
	run(folder, script);
	params.expects_change = change + 1;
	ck_assert_int_eq(rebuild_run(&params, &report, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	run(folder, "test ! -e catalog.db");
	params.expects_change = change;
	ck_assert_msg(rebuild_run(&params, &report, &err) == 0, "%s", err.text);
	unit_scratch_remove(folder);
}
END_TEST

START_TEST(a_dry_run_changes_nothing)
{
	char *folder = unit_scratch_copy(killed);
	char *copy = unit_scratch_copy(folder);
	struct rebuild_report report;
	char script[1200];
	const struct rebuild_params params = {.folder = folder,
		.files = file_system(),
		.promise_ms = HOUR_MS,
		.is_dry_run = true};
	ck_assert_msg(rebuild_run(&params, &report, &err) == 0, "%s", err.text);
	ck_assert_int_eq(report.objects, KEYS + 1);
	snprintf(script, sizeof(script), "diff -r . %s", copy);
	run(folder, script);
	unit_scratch_remove(copy);
	unit_scratch_remove(folder);
}
END_TEST

/* A newest log that lost its end: what lies in packs beyond it is kept by promises. */
START_TEST(what_the_journal_lacks_is_promised_and_the_rest_is_there)
{
	char *folder = unit_scratch_copy(killed);
	struct rebuild_report report;
	struct store_fixture left;
	run(folder,
		"rm catalog.db*; f=$(ls journal/*.log | tail -n 1);"
		" truncate -s $(($(stat -c %s $f) / 2)) $f");
	ck_assert_msg(rebuild(folder, &report) == 0, "%s", err.text);
	ck_assert_int_gt(report.acknowledged, report.way.end.change);
	ck_assert_str_ne(report.way.gap, "");
	ck_assert_uint_gt(report.packs.promised_xorbs, 0);
	open_store(&left, folder, "cut");
	ck_assert(holds(&left, "dead", LARGE, 1000) && holds(&left, "alive", LARGE, 1001));
	ck_assert_int_gt(fixture_count(left.store, "SELECT count(*) FROM xorbs"), 0);
	put(left.store, "more", SMALL, 500);
	close_store(&left);
	run(folder, "test ! -e set-aside");
	unit_scratch_remove(folder);
}
END_TEST

START_TEST(without_a_snapshot_nothing_is_made)
{
	char *folder = unit_scratch_copy(killed);
	struct rebuild_report report;
	run(folder, "rm catalog.db* journal/*.snapshot");
	ck_assert_int_eq(rebuild(folder, &report), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_uint_gt(report.nameless_packs, 0);
	run(folder, "test ! -e catalog.db && test -e acknowledged");
	unit_scratch_remove(folder);
}
END_TEST

/* Puts, deletes, and gc, which removes one pack and writes another again. */
static void work(struct power_disk *disk)
{
	struct gc_request request = {0};
	put(fixture.store, "late", LARGE, 2000);
	ck_assert_int_eq(journal_sync(store_journal(fixture.store), &err), 0);
	power_disk_mark(disk, 1);
	for (unsigned i = 2; i < KEYS; i++) {
		char name[16];
		key_name(name, i);
		if (i != 5)
			ck_assert_int_eq(
				fixture_delete(fixture.store, "bucket", name, NULL, &err), 0);
	}
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "dead", NULL, &err), 0);
	ck_assert_msg(gc_run(store_parts(fixture.store)->gc, &request, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(request.report.packs_deleted, 1);
	ck_assert_uint_eq(request.report.packs_compacted, 1);
}

/* Whatever the rebuilt catalog names reads right. */
static void check_left(char *folder, unsigned mark, const char *line)
{
	struct rebuild_report report;
	struct store_fixture left;
	run(folder, "rm -f catalog.db*");
	ck_assert_msg(rebuild(folder, &report) == 0, "cut before \"%s\": %s", line, err.text);
	open_store(&left, folder, line);
	ck_assert_msg(holds(&left, "alive", LARGE, 1001), "cut before \"%s\"", line);
	ck_assert_msg(holds(&left, "key5", SMALL, 5), "cut before \"%s\"", line);
	ck_assert_msg(!is_named(&left, "dead") || holds(&left, "dead", LARGE, 1000),
		"cut before \"%s\"", line);
	ck_assert_msg(!is_named(&left, "late") || holds(&left, "late", LARGE, 2000),
		"cut before \"%s\"", line);
	ck_assert_msg(mark == 0 || is_named(&left, "late"), "cut before \"%s\"", line);
	close_store(&left);
}

START_TEST(a_power_cut_leaves_a_journal_whose_catalog_is_whole)
{
	size_t count;
	fixture = (struct store_fixture){.folder = unit_scratch_copy(closed)};
	struct power_disk *disk = power_disk_new(fixture.folder);
	const struct store_options options = {.folder = fixture.folder,
		.files = power_disk_files(disk),
		.pack_max_bytes = 1024 * 1024};
	fixture.store = store_open(&options, &err);
	ck_assert_msg(fixture.store != NULL, "%s", err.text);
	fixture_await_start(fixture.store);
	power_disk_cut_each(disk, (enum power_cut)_i);
	work(disk);
	store_close(fixture.store);
	power_disk_cut_now(disk, "nothing more");
	const struct power_taken *taken = power_disk_taken(disk, &count);
	ck_assert_uint_gt(count, 5);
	const size_t stride = (size_t)unit_stride(9);
	for (size_t i = (count - 1) % stride; i < count; i += stride)
		check_left(taken[i].folder, taken[i].mark, taken[i].line);
	power_disk_free(disk);
	unit_scratch_remove(fixture.folder);
}
END_TEST

/* Whether a catalog that is made from what a power cut leaves now has this object. */
static bool outlives_a_cut(struct power_disk *disk, const char *key, size_t size, uint64_t seed)
{
	struct rebuild_report report;
	struct store_fixture left;
	char *folder = power_disk_cut(disk, POWER_CUT_DROPS_ALL);
	run(folder, "rm -f catalog.db*");
	ck_assert_msg(rebuild(folder, &report) == 0, "%s", err.text);
	open_store(&left, folder, "now");
	const bool result = holds(&left, key, size, seed);
	close_store(&left);
	unit_scratch_remove(folder);
	return result;
}

/* An inline object needs no sync of a pack, with which its record would be synced too. */
START_TEST(the_journal_is_synced_without_being_asked)
{
	fixture = (struct store_fixture){.folder = unit_scratch_copy(closed)};
	struct power_disk *disk = power_disk_new(fixture.folder);
	const struct store_options options = {
		.folder = fixture.folder, .files = power_disk_files(disk)};
	fixture.store = store_open(&options, &err);
	ck_assert_msg(fixture.store != NULL, "%s", err.text);
	fixture_await_start(fixture.store);
	put(fixture.store, "late", INLINE, 2000);
	for (int i = 0; i < 20 && !outlives_a_cut(disk, "late", INLINE, 2000); i++)
		sleep(1);
	ck_assert(outlives_a_cut(disk, "late", INLINE, 2000));
	store_close(fixture.store);
	power_disk_free(disk);
	unit_scratch_remove(fixture.folder);
}
END_TEST

/* A rebuild that was cut off left no catalog or the whole one, and another one makes it. */
static void check_rebuilt(char *folder, const char *line)
{
	char path[600];
	struct rebuild_report report;
	struct store_fixture left;
	snprintf(path, sizeof(path), "%s/catalog.db", folder);
	if (!file_exists(path)) {
		const struct store_options options = {.folder = folder};
		ck_assert_msg(store_open(&options, &err) == NULL, "cut before \"%s\"", line);
		ck_assert_msg(
			rebuild(folder, &report) == 0, "cut before \"%s\": %s", line, err.text);
	}
	open_store(&left, folder, line);
	expect_content(&left, line);
	close_store(&left);
}

START_TEST(a_power_cut_in_a_rebuild_is_harmless)
{
	size_t count;
	struct rebuild_report report;
	char *folder = unit_scratch_copy(killed);
	run(folder, "rm catalog.db*");
	struct power_disk *disk = power_disk_new(folder);
	power_disk_cut_each(disk, (enum power_cut)_i);
	ck_assert_msg(rebuild_on(power_disk_files(disk), folder, &report) == 0, "%s", err.text);
	power_disk_cut_now(disk, "nothing more");
	const char *trace = power_disk_trace(disk);
	const char *synced = strstr(trace, "sync rebuilding.db");
	const char *renamed = strstr(trace, "rename rebuilding.db");
	ck_assert_msg(synced != NULL && renamed != NULL && synced < renamed, "%s", trace);
	const struct power_taken *taken = power_disk_taken(disk, &count);
	const size_t stride = (size_t)unit_stride(5);
	for (size_t i = (count - 1) % stride; i < count; i += stride)
		check_rebuilt(taken[i].folder, taken[i].line);
	power_disk_free(disk);
	unit_scratch_remove(folder);
}
END_TEST

/* A rebuild that failed made no catalog or the whole one, left no file of its own, and can be
 * repeated. */
START_TEST(each_call_that_fails_is_told_and_harmless)
{
	static const int failures[] = {EIO, ENOSPC};
	struct file_faults faults;
	struct rebuild_report report;
	bool is_reached = true;
	int failed = 0;
	for (int n = 0; is_reached; n += unit_stride(5)) {
		char *folder = unit_scratch_copy(killed);
		run(folder, "rm catalog.db*");
		file_faults_init(&faults,
			FILE_FAULT_OPEN | FILE_FAULT_WRITE | FILE_FAULT_SYNC | FILE_FAULT_RENAME |
				FILE_FAULT_UNLINK,
			n, failures[_i]);
		const int result = rebuild_on(&faults.ops, folder, &report);
		is_reached = faults.countdown < 0;
		failed += result != 0;
		check_rebuilt(folder, "a failed call");
		run(folder, "test ! -e rebuilding.db");
		unit_scratch_remove(folder);
	}
	ck_assert_int_gt(failed, 0);
}
END_TEST

Suite *test_rebuild_suite(void);
Suite *test_rebuild_suite(void)
{
	Suite *suite = suite_create("rebuild");
	TCase *tests = tcase_create("all");
	tcase_set_timeout(tests, 300);
	tcase_add_unchecked_fixture(tests, make_all, remove_all);
	tcase_add_loop_test(tests, the_catalog_is_the_one_that_was_lost, 0, 2);
	tcase_add_test(tests, a_store_goes_on_and_can_be_rebuilt_again);
	tcase_add_test(tests, a_catalog_that_is_there_is_refused_or_set_aside);
	tcase_add_test(tests, a_journal_that_leads_elsewhere_makes_nothing);
	tcase_add_test(tests, a_dry_run_changes_nothing);
	tcase_add_test(tests, what_the_journal_lacks_is_promised_and_the_rest_is_there);
	tcase_add_test(tests, without_a_snapshot_nothing_is_made);
	tcase_add_loop_test(
		tests, a_power_cut_leaves_a_journal_whose_catalog_is_whole, 0, POWER_CUTS);
	tcase_add_test(tests, the_journal_is_synced_without_being_asked);
	tcase_add_loop_test(tests, a_power_cut_in_a_rebuild_is_harmless, 0, POWER_CUTS);
	tcase_add_loop_test(tests, each_call_that_fails_is_told_and_harmless, 0, 2);
	suite_add_tcase(suite, tests);
	return suite;
}
