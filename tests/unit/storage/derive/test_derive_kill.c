/* While checkpoints wait to be derived, the process is killed, or an operation fails, at its n-th
 * write, sync, rename, unlink or open; n grows until it gets through. Each time every checkpoint
 * must be there bit for bit, and the next start must end where an unharmed one does. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/open/store_open.h"
#include "tests/unit/storage/derived_fixture.h"
#include "tests/unit/storage/kill_fixture.h"

enum { STEPS = 4, LARGE = 60000, ROUNDS_MAX = 300, SOON_MS = 5, PATIENCE = 24000 };

static struct store_fixture fixture;
static struct derived_checkpoint steps[STEPS];
static char *template; /* a folder */

static const char *key_of(char key[64], unsigned step)
{
	snprintf(key, 64, "run/step_%06u/model.safetensors", step);
	return key;
}

static struct store *open_store(const struct file_ops *files, bool derives)
{
	struct error err = {0};
	const struct store_options options = {.folder = fixture.folder,
		.files = files,
		.pack_max_bytes = 1024 * 1024,
		.derive = {.enabled = derives, .min_bytes = 64 * 1024, .interval_ms = SOON_MS}};
	return store_open(&options, &err);
}

/* Checkpoints that wait, because they came while nothing was derived. */
static void prepare(void)
{
	struct error err = {0};
	char key[64];
	memset(&fixture, 0, sizeof(fixture));
	fixture.arena = arena_new(64 * 1024 * 1024);
	fixture.folder = unit_scratch_make();
	fixture.store = open_store(NULL, false);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "b", "main", &err), 0);
	for (unsigned i = 0; i < STEPS; i++) {
		derived_checkpoint_make(&steps[i], LARGE, i);
		derived_fixture_put(&fixture, "b", key_of(key, i), &steps[i]);
	}
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"INSERT INTO derive_waiting (version) SELECT sequence FROM versions", &err),
		0);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT count(*) FROM derive_waiting"), STEPS);
	store_close(fixture.store);
	template = fixture.folder;
}

static void finish(void)
{
	for (unsigned i = 0; i < STEPS; i++)
		derived_checkpoint_release(&steps[i]);
	arena_free(fixture.arena);
	unit_scratch_remove(template);
}

static bool settles(struct store *store, const struct file_faults *faults)
{
	for (int i = 0; i < PATIENCE; i++) {
		if (fixture_count(store, "SELECT count(*) FROM derive_waiting") == 0)
			return true;
		if (faults != NULL && faults->countdown < 0)
			return false;
		usleep(5000);
	}
	return false;
}

static void expect_all(int round)
{
	char key[64];
	for (unsigned i = 0; i < STEPS; i++)
		ck_assert_msg(
			fixture_holds(&fixture, "b", key_of(key, i), buffer_span(&steps[i].bytes)),
			"round %d: step %u", round, i);
}

/* After the next start everything is there, while it works and afterwards, and nothing is left
 * over. */
static void expect_recovered(int round)
{
	struct error err = {0};
	struct gc_request request = {0};
	fixture.store = open_store(NULL, true);
	ck_assert(fixture.store != NULL);
	fixture_await_start(fixture.store);
	expect_all(round);
	ck_assert_msg(settles(fixture.store, NULL), "round %d", round);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT count(*) FROM versions WHERE kind = 3"),
		STEPS - 1);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT count(*) FROM versions"), 2 * STEPS - 1);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM scratch_versions"), 0);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(gc_run(store_parts(fixture.store)->gc, &request, &err), 0);
	ck_assert_int_lt(fixture_count(fixture.store, "SELECT sum(bytes) FROM segments"),
		(int64_t)steps[0].bytes.len * 3 / 2);
	expect_all(round);
	store_close(fixture.store);
	unit_scratch_remove(fixture.folder);
}

static int work(const struct kill_child *child, const struct file_ops *files)
{
	(void)child;
	struct store *const store = open_store(files, true);
	if (store == NULL)
		return 1;
	if (!settles(store, NULL))
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
		expect_recovered(round);
	}
	finish();
	ck_assert(alive);
	ck_assert_int_gt(round, 10); /* it was killed in the middle of its work */
}
END_TEST

START_TEST(a_failure_anywhere_loses_and_leaves_nothing)
{
	bool clean = false;
	int round = 0;
	prepare();
	for (; round < ROUNDS_MAX && !clean; round += unit_stride(7)) {
		struct file_faults faults;
		file_faults_init(&faults, KILL_ANYWHERE, round, _i == 0 ? EIO : ENOSPC);
		faults.sticky = _i == 1;
		fixture.folder = unit_scratch_copy(template);
		fixture.store = open_store(&faults.ops, true);
		if (fixture.store != NULL) {
			clean = settles(fixture.store, &faults) && faults.countdown >= 0;
			faults.kinds = 0;
			expect_all(round);
			store_close(fixture.store);
		}
		expect_recovered(round);
	}
	finish();
	ck_assert(clean);
	ck_assert_int_gt(round, 3);
}
END_TEST

Suite *test_derive_kill_suite(void);
Suite *test_derive_kill_suite(void)
{
	Suite *const suite = suite_create("derive_kill");
	TCase *const tests = tcase_create("derive_kill");
	tcase_set_timeout(tests, 300);
	tcase_add_test(tests, a_kill_anywhere_loses_and_leaves_nothing);
	tcase_add_loop_test(tests, a_failure_anywhere_loses_and_leaves_nothing, 0, 2);
	suite_add_tcase(suite, tests);
	return suite;
}
