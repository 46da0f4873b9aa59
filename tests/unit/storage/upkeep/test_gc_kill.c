/* gc is killed, or one of its operations fails, at its n-th write, sync, rename, unlink or open
 * below packs; n grows until it gets through. Each time nothing may be lost, nothing may be left
 * over after the next start, and the next round must end where an unharmed one does. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/open/store_open.h"
#include "storage/packs/set_aside.h"
#include "storage/upkeep/gc.h"
#include "tests/unit/storage/kill_fixture.h"
#include "tests/unit/storage/store_fixture.h"

enum { KEYS = 24, KEPT_STEP = 6, SMALL = 20000, LARGE = 500000, ROUNDS_MAX = 200 };

static struct store_fixture fixture;
static char *template; /* a folder */

static void put(const char *key, size_t size, uint64_t seed)
{
	struct error err = {0};
	uint8_t *const bytes = fixture_noise(size, seed);
	ck_assert_msg(fixture_put(fixture.store, "bucket", key, span_of(bytes, size), &err) == 0,
		"%s", err.text);
	free(bytes);
}

static void expect(const char *key, size_t size, uint64_t seed, int round)
{
	uint8_t *const bytes = fixture_noise(size, seed);
	ck_assert_msg(fixture_holds(&fixture, "bucket", key, span_of(bytes, size)), "round %d: %s",
		round, key);
	free(bytes);
}

static void key_name(char name[16], unsigned number)
{
	snprintf(name, 16, "k%u", number);
}

/* A dead pack, a live one, and one with few live chunks. */
static void prepare(void)
{
	struct error err = {0};
	char name[16];
	memset(&fixture, 0, sizeof fixture);
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	put("dead", LARGE, 1000);
	put("alive", LARGE, 1001);
	for (unsigned i = 0; i < KEYS; i++) {
		key_name(name, i);
		put(name, SMALL, i);
	}
	for (unsigned i = 0; i < KEYS; i++) {
		key_name(name, i);
		if (i % KEPT_STEP != 0)
			ck_assert_int_eq(
				fixture_delete(fixture.store, "bucket", name, NULL, &err), 0);
	}
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "dead", NULL, &err), 0);
	store_fixture_reopen(&fixture); /* seals the shared pack */
	store_close(fixture.store);
	fixture.store = NULL;
	template = fixture.folder;
	fixture.folder = NULL;
}

static void open_copy(const struct file_ops *files)
{
	struct error err = {0};
	fixture.files = files;
	const struct store_options options = {.folder = fixture.folder,
		.files = files,
		.clock = &fixture.clock.source,
		.pack_max_bytes = 1024 * 1024};
	fixture.store = store_open(&options, &err);
	ck_assert_msg(fixture.store != NULL, "%s", err.text);
	fixture_await_start(fixture.store);
}

static void finish_copy(void)
{
	store_close(fixture.store);
	unit_scratch_remove(fixture.folder);
}

static void finish(void)
{
	arena_free(fixture.arena);
	unit_scratch_remove(template);
}

static void expect_all(int round)
{
	expect("alive", LARGE, 1001, round);
	for (unsigned i = 0; i < KEYS; i += KEPT_STEP) {
		char name[16];
		key_name(name, i);
		expect(name, SMALL, i, round);
	}
}

/* Nothing that gc leaves is ever in doubt. */
static void expect_nothing_aside(int round)
{
	struct error err = {0};
	struct set_aside aside;
	ck_assert_msg(set_aside_list(fixture.folder, &aside, &err) == 0, "%s", err.text);
	ck_assert_msg(aside.count == 0, "round %d: %s was set aside", round, aside.files[0].name);
	set_aside_release(&aside);
}

/* After a start each pack has its file, and nothing else lies there. Then a round gives everything
 * back. */
static void expect_recovered(int round)
{
	struct error err = {0};
	struct gc_request request = {0};
	const int64_t rows = fixture_count(fixture.store, "SELECT COUNT(*) FROM packs");
	ck_assert_int_eq(fixture_pack_files(&fixture, "-name '*.pack'"), rows);
	ck_assert_int_eq(fixture_pack_files(&fixture, "-name '*.tmp-*'"), 0);
	ck_assert_int_le(fixture_pack_files(&fixture, ""), 2 * rows);
	expect_nothing_aside(round);
	expect_all(round);
	ck_assert_msg(gc_run(store_parts(fixture.store)->gc, &request, &err) == 0, "round %d: %s",
		round, err.text);
	ck_assert_int_eq(fixture_pack_files(&fixture, "-name '*.pack'"), 2);
	ck_assert_int_eq(fixture_pack_files(&fixture, ""), 4);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT SUM(length < 200000) FROM packs"), 1);
	expect_all(round);
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(fixture_pack_files(&fixture, ""), 4);
	expect_all(round);
}

static int work(const struct kill_child *child, const struct file_ops *files)
{
	struct error err = {0};
	struct gc_request request = {0};
	(void)child;
	const struct store_options options = {
		.folder = fixture.folder, .files = files, .pack_max_bytes = 1024 * 1024};
	struct store *const store = store_open(&options, &err);
	if (store == NULL)
		return 1;
	if (gc_run(store_parts(store)->gc, &request, &err) != 0)
		return 2;
	store_close(store);
	return 0;
}

START_TEST(a_kill_anywhere_loses_and_leaves_nothing)
{
	bool alive = false;
	int round = 0;
	prepare();
	for (; round < ROUNDS_MAX && !alive; round += unit_stride(7)) {
		fixture.folder = unit_scratch_copy(template);
		struct kill_child child = {
			.kinds = KILL_ANYWHERE, .countdown = round, .work = work};
		alive = kill_child_run(&child, NULL);
		open_copy(NULL);
		expect_recovered(round);
		finish_copy();
	}
	finish();
	ck_assert(alive);
	ck_assert_int_gt(round, 10); /* it was killed in the middle of its work */
}
END_TEST

static const struct {
	int kinds;
	int failure;
	bool sticky;
} failures[] = {
	{KILL_ANYWHERE, EIO, false},
	{KILL_ANYWHERE, EIO, true},
	{FILE_FAULT_WRITE | FILE_FAULT_SYNC, ENOSPC, true},
	{FILE_FAULT_UNLINK, EIO, true},
};

START_TEST(a_failure_anywhere_loses_and_leaves_nothing)
{
	bool clean = false;
	int round = 0;
	prepare();
	for (; round < ROUNDS_MAX && !clean; round += unit_stride(7)) {
		struct error err = {0};
		struct gc_request request = {0};
		struct file_faults faults;
		file_faults_init(&faults, 0, 0, failures[_i].failure);
		fixture.folder = unit_scratch_copy(template);
		open_copy(&faults.ops);
		faults.countdown = round;
		faults.sticky = failures[_i].sticky;
		faults.kinds = failures[_i].kinds;
		/* a failure is logged, and the work is tried again later */
		gc_run(store_parts(fixture.store)->gc, &request, &err);
		clean = faults.countdown >= 0;
		faults.kinds = 0;
		expect_all(round);
		store_close(fixture.store);
		open_copy(NULL);
		expect_recovered(round);
		finish_copy();
	}
	finish();
	ck_assert(clean);
	ck_assert_int_gt(round, 3);
}
END_TEST

Suite *test_gc_kill_suite(void);
Suite *test_gc_kill_suite(void)
{
	Suite *const suite = suite_create("gc_kill");
	TCase *const tests = tcase_create("gc_kill");
	tcase_set_timeout(tests, 300);
	tcase_add_test(tests, a_kill_anywhere_loses_and_leaves_nothing);
	tcase_add_loop_test(tests, a_failure_anywhere_loses_and_leaves_nothing, 0,
		sizeof failures / sizeof *failures);
	suite_add_tcase(suite, tests);
	return suite;
}
