/* The server is killed at its n-th write, sync, rename, unlink or open while it proves steps and
 * makes an anchor; n grows until it gets through. After each kill the next start finds all steps,
 * proves them, and can give each of them whole; nothing of the attempt is left. */
#include "tests/unit/unit.h"

#include "storage/open/store_open.h"
#include "storage/step_jobs/step_worker.h"
#include "tests/unit/storage/kill_fixture.h"
#include "tests/unit/storage/step_fixture.h"

enum { LAST_STEP = 3, ROUNDS_MAX = 400 };

static struct step_fixture fixture;
static char *template; /* a folder */

static void prepare(void)
{
	step_fixture_open(&fixture);
	for (unsigned step = 0; step <= LAST_STEP; step++)
		step_fixture_publish(
			&fixture, step, step == 0 ? STEP_WITH_ANCHOR : STEP_WITH_DELTA);
	store_close(fixture.store.store);
	fixture.store.store = NULL;
	template = fixture.store.folder;
}

static int work(const struct kill_child *child, const struct file_ops *files)
{
	struct error err = {0};
	size_t failed;
	(void)child;
	const struct store_options options = {
		.folder = fixture.store.folder, .files = files, .pack_max_bytes = 1024 * 1024};
	struct store *const store = store_open(&options, &err);
	if (store == NULL)
		return 1;
	step_worker_settle(store_parts(store)->step_worker, &failed);
	store_close(store);
	return failed == 0 ? 0 : 2;
}

static void expect_recovered(int round)
{
	struct error err = {0};
	const struct store_options options = {
		.folder = fixture.store.folder, .pack_max_bytes = 1024 * 1024};
	fixture.store.store = store_open(&options, &err);
	ck_assert_msg(fixture.store.store != NULL, "round %d: %s", round, err.text);
	fixture_await_start(fixture.store.store);
	ck_assert_int_eq(
		fixture_count(fixture.store.store, "SELECT COUNT(*) FROM scratch_versions"), 0);
	ck_assert_uint_eq(step_fixture_settle(&fixture), 0);
	ck_assert_int_eq(
		fixture_count(fixture.store.store, "SELECT COUNT(*) FROM steps WHERE verified = 1"),
		LAST_STEP + 1);
	ck_assert_int_eq(
		fixture_count(fixture.store.store, "SELECT made FROM steps WHERE step = 3"), 1);
	for (unsigned step = 0; step <= LAST_STEP; step++)
		ck_assert_msg(
			step_fixture_is_whole(&fixture, step), "round %d: step %u", round, step);
	ck_assert_int_eq(
		fixture_count(fixture.store.store,
			"SELECT COUNT(*) FROM versions v WHERE state = 0"
			" AND NOT EXISTS (SELECT 1 FROM step_objects o WHERE o.version = v.sequence)"
			" AND NOT EXISTS (SELECT 1 FROM fold_objects f WHERE f.version = v.sequence)"
			" AND NOT EXISTS (SELECT 1 FROM derivation_sources d WHERE d.source = v.sequence)"),
		0);
	store_close(fixture.store.store);
	fixture.store.store = NULL;
}

START_TEST(a_kill_anywhere_loses_and_leaves_nothing)
{
	bool alive = false;
	int round = 0;
	prepare();
	/* all of the first ones, then some */
	for (; round < ROUNDS_MAX && !alive; round += unit_stride(4) + round / 24) {
		fixture.store.folder = unit_scratch_copy(template);
		struct kill_child child = {
			.kinds = KILL_ANYWHERE, .countdown = round, .work = work};
		alive = kill_child_run(&child, NULL);
		expect_recovered(round);
		unit_scratch_remove(fixture.store.folder);
	}
	ck_assert(alive);
	ck_assert_int_gt(round, 10); /* it was killed in the middle of its work */
	fixture.store.folder = template;
	const struct store_options options = {.folder = template};
	struct error err = {0};
	fixture.store.store = store_open(&options, &err);
	ck_assert(fixture.store.store != NULL);
	step_fixture_close(&fixture);
}
END_TEST

Suite *test_step_kill_suite(void);
Suite *test_step_kill_suite(void)
{
	Suite *const suite = suite_create("step_kill");
	TCase *const tests = tcase_create("all");
	tcase_set_timeout(tests, 300);
	tcase_add_test(tests, a_kill_anywhere_loses_and_leaves_nothing);
	suite_add_tcase(suite, tests);
	return suite;
}
