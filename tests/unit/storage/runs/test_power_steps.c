/* Background work, with the power cut before each of its operations. Its results replace nothing
 * before they are durable, and its scratch files have no effect. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/open/store_open.h"
#include "storage/step_jobs/step_worker.h"
#include "tests/unit/storage/power_fixture.h"
#include "tests/unit/storage/step_fixture.h"

enum { CHECKPOINTS = 3, LARGE = 30000, LAST_STEP = 2, PATIENCE = 24000 };

/* The cuts differ in what the disk keeps beside the bytes that were synced. */
static const enum power_cut cuts[] = {POWER_CUT_DROPS_ALL, POWER_CUT_KEEPS_LENGTHS};
enum { CUTS = sizeof cuts / sizeof cuts[0] };

static struct store_fixture fixture;
static struct derived_checkpoint checkpoints[CHECKPOINTS];

static const char *key_of(char key[64], unsigned number)
{
	snprintf(key, 64, "run/step_%06u/model.safetensors", number);
	return key;
}

static void await_derived(struct store *store)
{
	int64_t waiting = 1;
	for (int i = 0; i < PATIENCE && waiting > 0; i++) {
		waiting = fixture_count(store, "SELECT count(*) FROM derive_waiting");
		if (waiting > 0)
			usleep(2000);
	}
	ck_assert_int_eq(waiting, 0);
}

static void check_checkpoints(struct store_fixture *left, unsigned mark, const char *line)
{
	char key[64];
	(void)mark;
	ck_assert_int_eq(fixture_count(left->store, "SELECT count(*) FROM scratch_versions"), 0);
	for (unsigned i = 0; i < CHECKPOINTS; i++)
		ck_assert_msg(fixture_holds(left, "b", key_of(key, i),
				      buffer_span(&checkpoints[i].bytes)),
			"cut before \"%s\": checkpoint %u", line, i);
}

START_TEST(a_checkpoint_becomes_a_derived_one_that_lasts)
{
	struct error err = {0};
	char key[64];
	memset(&fixture, 0, sizeof fixture);
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "b", "main", &err), 0);
	for (unsigned i = 0; i < CHECKPOINTS; i++) {
		derived_checkpoint_make(&checkpoints[i], LARGE, i);
		derived_fixture_put(&fixture, "b", key_of(key, i), &checkpoints[i]);
	}
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"INSERT INTO derive_waiting (version) SELECT sequence FROM versions", &err),
		0);
	store_close(fixture.store);
	fixture.derives = true;
	struct power_disk *const disk = power_fixture_begin(&fixture, cuts[_i]);
	await_derived(fixture.store);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT count(*) FROM versions WHERE kind = 3"),
		CHECKPOINTS - 1);
	power_fixture_end(&fixture, disk, 0, check_checkpoints);
	for (unsigned i = 0; i < CHECKPOINTS; i++)
		derived_checkpoint_release(&checkpoints[i]);
	arena_free(fixture.arena);
	unit_scratch_remove(fixture.folder);
}
END_TEST

static struct step_fixture steps;

/* Everything that proofs, anchors and folds have made so far can be read, and the rest can be
 * made. */
static void check_steps(struct store_fixture *left, unsigned mark, const char *line)
{
	struct step_fixture whole = steps;
	(void)mark;
	whole.store = *left;
	ck_assert_msg(step_fixture_settle(&whole) == 0, "cut before \"%s\": a job failed", line);
	ck_assert_int_eq(
		fixture_count(left->store, "SELECT COUNT(*) FROM steps WHERE verified = 1"),
		LAST_STEP + 1);
	for (unsigned step = 0; step <= LAST_STEP; step++)
		ck_assert_msg(step_fixture_is_whole(&whole, step), "cut before \"%s\": step %u",
			line, step);
}

START_TEST(what_is_made_of_steps_lasts)
{
	struct power_disk *disk;
	step_fixture_open(&steps);
	for (unsigned step = 0; step <= LAST_STEP; step++)
		step_fixture_publish(&steps, step, step == 0 ? STEP_WITH_ANCHOR : STEP_WITH_DELTA);
	store_close(steps.store.store);
	disk = power_fixture_begin(&steps.store, cuts[_i]);
	ck_assert_uint_eq(step_fixture_settle(&steps), 0);
	ck_assert_int_eq(
		fixture_count(steps.store.store, "SELECT made FROM steps WHERE step = 2"), 1);
	power_fixture_end(&steps.store, disk, 0, check_steps);
	for (unsigned i = 0; i < steps.made; i++)
		derived_checkpoint_release(&steps.steps[i]);
	unit_scratch_remove(steps.folder);
	arena_free(steps.store.arena);
	unit_scratch_remove(steps.store.folder);
}
END_TEST

Suite *test_power_steps_suite(void);
Suite *test_power_steps_suite(void)
{
	Suite *const suite = suite_create("power_steps");
	TCase *const tests = tcase_create("power_steps");
	tcase_add_loop_test(tests, a_checkpoint_becomes_a_derived_one_that_lasts, 0, CUTS);
	tcase_add_loop_test(tests, what_is_made_of_steps_lasts, 0, CUTS);
	suite_add_tcase(suite, tests);
	return suite;
}
