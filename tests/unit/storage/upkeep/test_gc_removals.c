/* gc does not remove a file that the cache reads from, and removes nothing from the moment in which
 * the catalog is found damaged. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/journal/journal.h"
#include "storage/core/store.h"
#include "storage/packs/backup_holds.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/packs/store_health.h"
#include "storage/upkeep/gc.h"
#include "tests/unit/storage/store_fixture.h"

enum { LARGE = 600 * 1000, SMALL = 270 * 1000, PAGE_BYTES = 4096, MANY = 300, GROUPS_PACKS = 66 };
static const char SQL_MANY_REMOVALS[] =
	"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)"
	" INSERT INTO removals (file) SELECT randomblob(16) FROM n";

static struct store_fixture fixture;
static struct error err;

/* Damages the catalog when the first file of a pack goes. */
static struct damaging {
	struct file_ops ops;
	int64_t page; /* 0: not yet */
	unsigned unlinked;
} damaging;

static void damage_catalog(void)
{
	static const uint8_t zeros[PAGE_BYTES];
	char *path = store_fixture_path(&fixture, "catalog.db");
	int fd = open(path, O_WRONLY);
	ck_assert_int_eq(
		pwrite(fd, zeros, sizeof zeros, (damaging.page - 1) * PAGE_BYTES), sizeof zeros);
	close(fd);
	free(path);
	store_health_set_proof(
		store_health(fixture.store), STORE_DAMAGED, "a page of 'step_views' is damaged");
}

static int damaging_unlink(const struct file_ops *ops, const char *path)
{
	(void)ops;
	if (damaging.page != 0 && strstr(path, "/packs/") != NULL && damaging.unlinked++ == 0)
		damage_catalog();
	return file_system()->unlink(file_system(), path);
}

static void open_with(const struct file_ops *files)
{
	memset(&fixture, 0, sizeof fixture);
	fixture.files = files;
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static void put(const char *key, uint64_t seed)
{
	uint8_t *bytes = fixture_noise(LARGE, seed);
	ck_assert_msg(fixture_put(fixture.store, "bucket", key, span_of(bytes, LARGE), &err) == 0,
		"%s", err.text);
	free(bytes);
}

static bool holds(const char *key, uint64_t seed)
{
	uint8_t *bytes = fixture_noise(LARGE, seed);
	bool result = fixture_holds(&fixture, "bucket", key, span_of(bytes, LARGE));
	free(bytes);
	return result;
}

static int collect(void)
{
	struct gc_request request = {.live_percent = 0};
	return gc_run(store_parts(fixture.store)->gc, &request, &err);
}

static int64_t removals(void)
{
	return fixture_count(fixture.store, "SELECT COUNT(*) FROM removals");
}

static int64_t packs(void)
{
	return fixture_pack_files(&fixture, "-name '*.pack'");
}

/* As if another thread had just committed that the pack lies in a new file, and had not told the
 * cache yet. */
START_TEST(a_file_that_the_cache_reads_is_left)
{
	open_with(NULL);
	put("a", 1);
	ck_assert_int_eq(fixture_run(fixture.store,
				 "INSERT INTO removals (file) SELECT id FROM packs", &err),
		0);
	ck_assert_msg(collect() == 0, "%s", err.text);
	ck_assert_int_eq(removals(), 1);
	ck_assert_int_eq(packs(), 1);
	ck_assert(holds("a", 1));
	ck_assert_int_eq(fixture_run(fixture.store, "DELETE FROM removals", &err), 0);
}
END_TEST

static size_t count_referable(void)
{
	struct pack_store *store = store_packs(fixture.store);
	struct pack_id *ids;
	size_t found = 0;
	const size_t count = pack_cache_list(store->cache, &ids);
	for (size_t i = 0; i < count; i++) {
		const bool is_referred = pack_store_refer(store, &ids[i]);
		if (is_referred)
			pack_store_unrefer(store, &ids[i]);
		found += is_referred;
	}
	free(ids);
	return found;
}

START_TEST(a_round_ends_when_damage_is_found)
{
	static const char *const keys[] = {"a", "b", "c", "d"};
	damaging = (struct damaging){.ops = *file_system()};
	damaging.ops.unlink = damaging_unlink;
	open_with(&damaging.ops);
	for (size_t i = 0; i < 4; i++)
		put(keys[i], i + 1);
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(packs(), 4);
	for (size_t i = 0; i < 4; i++)
		ck_assert_int_eq(fixture_delete(fixture.store, "bucket", keys[i], NULL, &err), 0);
	damaging.page = fixture_count(
		fixture.store, "SELECT rootpage FROM sqlite_schema WHERE name = 'step_views'");
	ck_assert_int_eq(collect(), -1);
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
	ck_assert_int_eq(packs(), 3);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM packs"), 3);
	ck_assert_int_eq(removals(), 1);
	ck_assert_uint_eq(
		count_referable(), 0); /* the others are given up, and go in a later round */
}
END_TEST

/* More than one listing gives. */
START_TEST(many_removals_end_in_one_round)
{
	open_with(NULL);
	put("a", 1);
	ck_assert_int_eq(fixture_run(fixture.store, SQL_MANY_REMOVALS, &err), 0);
	ck_assert_int_eq(removals(), MANY);
	ck_assert_msg(collect() == 0, "%s", err.text);
	ck_assert_int_eq(removals(), 0);
	ck_assert(holds("a", 1));
}
END_TEST

/* Files that cannot be removed are tried once in a round. */
START_TEST(removals_that_fail_do_not_hold_up_the_round)
{
	static struct file_faults faults; /* outlives the store */
	file_faults_init(&faults, 0, 0, EIO);
	open_with(&faults.ops);
	put("a", 1);
	ck_assert_int_eq(fixture_run(fixture.store, SQL_MANY_REMOVALS, &err), 0);
	faults.sticky = true;
	faults.kinds = FILE_FAULT_UNLINK;
	ck_assert_msg(collect() == 0, "%s", err.text);
	ck_assert_int_eq(removals(), MANY);
	faults.kinds = 0;
	ck_assert_msg(collect() == 0, "%s", err.text);
	ck_assert_int_eq(removals(), 0);
	store_fixture_stop(&fixture);
	fixture.files = NULL;
	store_fixture_start(&fixture);
}
END_TEST

/* Fails while the test asks it to. */
static atomic_bool folders_fail;

static int fail_folder_sync(const struct file_ops *ops, int fd)
{
	struct stat state;
	(void)ops;
	if (atomic_load(&folders_fail) && fstat(fd, &state) == 0 && S_ISDIR(state.st_mode)) {
		errno = EIO;
		return -1;
	}
	return file_system()->fdatasync(file_system(), fd);
}

/* After a power cut the file may be there again; then its row must be there too. */
START_TEST(a_row_stays_until_its_file_is_gone_for_good)
{
	static struct file_ops ops;
	ops = *file_system();
	ops.fdatasync = fail_folder_sync;
	open_with(&ops);
	put("a", 1);
	put("b", 2);
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "a", NULL, &err), 0);
	ck_assert_int_eq(journal_sync(store_journal(fixture.store), &err), 0); /* its name too */
	atomic_store(&folders_fail, true);
	ck_assert_int_eq(collect(), -1);
	ck_assert_int_eq(removals(), 1);
	atomic_store(&folders_fail, false);
	ck_assert_msg(collect() == 0, "%s", err.text);
	ck_assert_int_eq(removals(), 0);
	ck_assert(holds("b", 2));
}
END_TEST

/* Removed files that still take space, because they are open. */
static int64_t kept_open(void)
{
	long long number = -1;
	char command[100];
	snprintf(command, sizeof command, "ls -l /proc/%d/fd | grep -c '[.]pack (deleted)'",
		(int)getpid());
	FILE *pipe = popen(command, "r");
	ck_assert(pipe != NULL && fscanf(pipe, "%lld", &number) == 1);
	pclose(pipe);
	return number;
}

START_TEST(a_pack_that_went_is_not_kept_open)
{
	open_with(NULL);
	put("a", 1);
	put("b", 2);
	ck_assert(holds("a", 1) && holds("b", 2));
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "a", NULL, &err), 0);
	ck_assert_msg(collect() == 0, "%s", err.text);
	ck_assert_int_eq(packs(), 1);
	ck_assert_int_eq(kept_open(), 0);
	ck_assert(holds("b", 2));
}
END_TEST

/* Uploads find its chunks again, as before. */
START_TEST(a_pack_that_cannot_be_written_anew_is_used_on)
{
	static struct file_faults faults; /* outlives the store */
	char key[16];
	file_faults_init(&faults, 0, 0, ENOSPC);
	open_with(&faults.ops);
	for (int i = 0; i < 10; i++) {
		uint8_t *bytes = fixture_noise(SMALL / 10, 100 + (uint64_t)i);
		snprintf(key, sizeof key, "k%d", i);
		ck_assert_int_eq(
			fixture_put(fixture.store, "bucket", key, span_of(bytes, SMALL / 10), &err),
			0);
		free(bytes);
	}
	for (int i = 1; i < 10; i++) {
		snprintf(key, sizeof key, "k%d", i);
		ck_assert_int_eq(fixture_delete(fixture.store, "bucket", key, NULL, &err), 0);
	}
	store_fixture_reopen(&fixture); /* seals the pack */
	fixture_sweep(fixture.store);
	ck_assert_uint_eq(count_referable(), 1);
	faults.sticky = true;
	faults.kinds = FILE_FAULT_OPEN;
	collect();
	faults.kinds = 0;
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM packs WHERE file IS NOT NULL"),
		0);
	ck_assert_uint_eq(count_referable(), 1);
	ck_assert_msg(collect() == 0, "%s", err.text);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM packs WHERE file IS NOT NULL"),
		1);
	ck_assert_uint_eq(count_referable(), 1);
	store_fixture_stop(&fixture);
	fixture.files = NULL;
	store_fixture_start(&fixture);
}
END_TEST

/* More than are worked on at a time. */
START_TEST(many_packs_go_in_one_round)
{
	char key[16];
	struct gc_request request = {.live_percent = 0};
	open_with(NULL);
	for (int i = 0; i < GROUPS_PACKS; i++) {
		uint8_t *bytes = fixture_noise(SMALL, 100 + (uint64_t)i);
		snprintf(key, sizeof key, "k%d", i);
		ck_assert_msg(
			fixture_put(fixture.store, "bucket", key, span_of(bytes, SMALL), &err) == 0,
			"%s", err.text);
		free(bytes);
	}
	put("a", 1);
	for (int i = 0; i < GROUPS_PACKS; i++) {
		snprintf(key, sizeof key, "k%d", i);
		ck_assert_int_eq(fixture_delete(fixture.store, "bucket", key, NULL, &err), 0);
	}
	ck_assert_msg(gc_run(store_parts(fixture.store)->gc, &request, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(request.report.packs_deleted, GROUPS_PACKS);
	ck_assert_uint_eq(request.report.packs_waiting, 0);
	ck_assert_int_eq(packs(), 1);
	ck_assert(holds("a", 1));
}
END_TEST

/* Waits until gc has condemned the pack, which is still held. */
static void await_condemned(void)
{
	while (fixture_count(fixture.store, "SELECT COUNT(*) FROM packs WHERE state = 2") == 0)
		sched_yield();
}

/* The round ends while a pack is held: the report says that it waits. */
START_TEST(a_pack_that_waits_is_told_of_when_the_round_ends)
{
	const struct gc_request request = {.live_percent = 0};
	struct pack_id *ids = NULL;
	open_with(NULL);
	put("a", 1);
	ck_assert_uint_eq(pack_cache_list(store_packs(fixture.store)->cache, &ids), 1);
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "a", NULL, &err), 0);
	fixture_sweep(fixture.store);
	ck_assert(pack_store_refer(store_packs(fixture.store), &ids[0]));
	struct settled *const ended = settled_new();
	struct call *const round = gc_call(store_parts(fixture.store)->gc, &request);
	call_start(round, settled_done, ended);
	await_condemned();
	store_health_set_proof(
		store_health(fixture.store), STORE_DAMAGED, "a page of 'step_views' is damaged");
	settled_wait(ended);
	ck_assert_int_eq(call_outcome(round, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
	ck_assert_uint_eq(gc_result(round)->report.packs_waiting, 1);
	call_free(round);
	ck_assert_int_eq(packs(), 1);
	ck_assert(!pack_store_refer(store_packs(fixture.store), &ids[0])); /* it is condemned */
	pack_store_unrefer(store_packs(fixture.store), &ids[0]);
	free(ids);
}
END_TEST

static void put_shared(void)
{
	char key[16];
	uint8_t *bytes = fixture_noise(10 * 2000, 7);
	for (size_t i = 0; i < 10; i++) {
		snprintf(key, sizeof key, "s%zu", i);
		ck_assert_int_eq(fixture_put(fixture.store, "bucket", key,
					 span_of(bytes + i * 2000, 2000), &err),
			0);
	}
	free(bytes);
}

static void delete_shared(void)
{
	char key[16];
	for (int i = 1; i < 10; i++) {
		snprintf(key, sizeof key, "s%d", i);
		ck_assert_int_eq(fixture_delete(fixture.store, "bucket", key, NULL, &err), 0);
	}
}

/* A pack that is deleted and one that is compacted, each beside a restart; both files go once the
 * backup has ended. */
START_TEST(no_file_goes_that_a_backup_may_name)
{
	struct backup_hold hold;
	open_with(NULL);
	put("a", 1);
	put("b", 2);
	put_shared();
	const int64_t before = packs();
	ck_assert_int_eq(
		backup_holds_take(store_backup_holds(fixture.store), "nightly", &hold, &err), 0);
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "a", NULL, &err), 0);
	delete_shared();
	fixture_sweep(fixture.store);
	ck_assert_msg(collect() == 0, "%s", err.text);
	ck_assert_int_eq(removals(), 2);
	ck_assert_int_eq(packs(), before + 1); /* with the compacted one */
	store_fixture_reopen(&fixture);
	fixture_await_start(fixture.store);
	ck_assert_int_eq(packs(), before + 1);
	ck_assert_msg(collect() == 0, "%s", err.text);
	ck_assert_int_eq(packs(), before + 1);
	ck_assert_int_eq(backup_holds_end(store_backup_holds(fixture.store), hold.id, &err), 0);
	ck_assert_msg(collect() == 0, "%s", err.text);
	ck_assert_int_eq(removals(), 0);
	ck_assert_int_eq(packs(), before - 1);
	ck_assert(holds("b", 2));
}
END_TEST

/* Also when no pack is left to look at. */
START_TEST(what_a_backup_held_goes_in_a_store_without_packs)
{
	struct backup_hold hold;
	open_with(NULL);
	put("a", 1);
	ck_assert_int_eq(
		backup_holds_take(store_backup_holds(fixture.store), "nightly", &hold, &err), 0);
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "a", NULL, &err), 0);
	fixture_sweep(fixture.store);
	ck_assert_msg(collect() == 0, "%s", err.text);
	ck_assert_int_eq(packs(), 1);
	ck_assert_int_eq(backup_holds_end(store_backup_holds(fixture.store), hold.id, &err), 0);
	ck_assert_msg(collect() == 0, "%s", err.text);
	ck_assert_int_eq(packs(), 0);
}
END_TEST

Suite *test_gc_removals_suite(void);
Suite *test_gc_removals_suite(void)
{
	Suite *suite = suite_create("gc_removals");
	TCase *tests = tcase_create("gc_removals");
	tcase_add_checked_fixture(tests, NULL, tear_down);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, a_file_that_the_cache_reads_is_left);
	tcase_add_test(tests, a_round_ends_when_damage_is_found);
	tcase_add_test(tests, many_removals_end_in_one_round);
	tcase_add_test(tests, removals_that_fail_do_not_hold_up_the_round);
	tcase_add_test(tests, a_row_stays_until_its_file_is_gone_for_good);
	tcase_add_test(tests, a_pack_that_went_is_not_kept_open);
	tcase_add_test(tests, a_pack_that_cannot_be_written_anew_is_used_on);
	tcase_add_test(tests, many_packs_go_in_one_round);
	tcase_add_test(tests, a_pack_that_waits_is_told_of_when_the_round_ends);
	tcase_add_test(tests, no_file_goes_that_a_backup_may_name);
	tcase_add_test(tests, what_a_backup_held_goes_in_a_store_without_packs);
	suite_add_tcase(suite, tests);
	return suite;
}
