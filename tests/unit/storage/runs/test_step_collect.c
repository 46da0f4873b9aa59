#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/storage/run_fixture.h"

static struct store_fixture fixture;

static void set_up(void)
{
	run_fixture_open(&fixture);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static struct path_message path(const struct run_path_params *params)
{
	return run_fixture_path(&fixture, params);
}

static int collect(uint64_t step, struct error *err)
{
	return fixture_call(run_collect_call(fixture.store, &run_fixture_ref, step), err);
}

START_TEST(collecting_never_breaks_a_chain)
{
	struct error err = {0};
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &step);
	for (unsigned i = 1; i <= 4; i++) {
		step = run_fixture_prepare(&fixture, i, i == 3, 100);
		run_fixture_publish_ok(&fixture, &step);
	}
	ck_assert_int_eq(collect(0, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CHAIN_IN_USE);
	ck_assert_int_eq(collect(4, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CHAIN_IN_USE);
	ck_assert_int_eq(collect(9, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_STEP);
	const uint64_t bytes = run_fixture_run(&fixture).bytes;
	ck_assert_int_eq(collect(2, &err), 0);
	ck_assert_int_eq(collect(2, &err), 0);
	ck_assert_uint_eq(run_fixture_run(&fixture).steps, 4);
	ck_assert_uint_eq(run_fixture_run(&fixture).bytes, bytes - 100);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM step_manifests"), 4);

	struct step_message read;
	uint64_t anchor = 0;
	ck_assert_int_eq(run_fixture_find(&fixture, 2, &read, &anchor, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_COLLECTED);
	ck_assert_uint_eq(anchor, 3);
	struct object object;
	ck_assert_int_eq(run_find_object(fixture.store,
				 &(struct run_file_ref){
					 run_fixture_ref, 2, span_text("delta/delta.safetensors")},
				 fixture.arena, &object, &anchor, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_COLLECTED);

	struct path_message way = path(&(struct run_path_params){.has_have = true,
		.have = 2,
		.has_digest = true,
		.digest = run_fixture_checkpoint(2),
		.want = 3});
	ck_assert_uint_eq(way.link_count, 1);
	/* the step is collected, but the reader has it: no anchor is needed */
	ck_assert(!way.from_nothing && way.from_step == 2);
	ck_assert_uint_eq(way.bytes, 100);
	way = path(&(struct run_path_params){.has_have = true,
		.have = 1,
		.has_digest = true,
		.digest = run_fixture_checkpoint(1),
		.want = 4});
	ck_assert(way.from_nothing);
	ck_assert_uint_eq(way.links[0].step, 3);

	struct step_message *steps;
	size_t count;
	ck_assert_int_eq(run_list_steps(fixture.store,
				 &(struct run_steps_scan){.run = run_fixture_ref, .limit = 10},
				 fixture.arena, &steps, &count, &err),
		0);
	ck_assert_uint_eq(count, 5);
	ck_assert(steps[2].collected && !steps[1].collected);
	const struct digest128 digest = run_fixture_checkpoint(2);
	ck_assert(steps[2].step == 2 && digest128_equal(&steps[2].digest, &digest));
}
END_TEST

/* An anchor that is collected too does not count. */
START_TEST(the_nearest_anchor_that_is_kept_is_told)
{
	struct error err = {0};
	struct step_message read;
	uint64_t anchor = 0;
	for (unsigned i = 0; i <= 4; i++) {
		const struct step_message step = run_fixture_prepare(&fixture, i, true, 0);
		run_fixture_publish_ok(&fixture, &step);
	}
	ck_assert_int_eq(collect(1, &err), 0);
	ck_assert_int_eq(collect(2, &err), 0);
	ck_assert_int_eq(run_fixture_find(&fixture, 1, &read, &anchor, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_COLLECTED);
	ck_assert_uint_eq(anchor, 3);
}
END_TEST

START_TEST(what_nothing_is_built_on_any_more_goes_with_its_adoption)
{
	struct error err = {0};
	for (unsigned i = 0; i <= 4; i++) {
		const struct step_message step =
			run_fixture_prepare(&fixture, i, i % 3 == 0, i % 3 == 0 ? 0 : 100);
		run_fixture_publish_ok(&fixture, &step);
	}
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"INSERT INTO adoptions (run, identity, convention, state, objects, step, created_ms)"
			" SELECT run, CAST(step AS BLOB), 1, 1, x'', step, 0 FROM steps",
			&err),
		0);
	ck_assert_int_eq(collect(1, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CHAIN_IN_USE);
	ck_assert_int_eq(collect(2, &err), 0);
	ck_assert_int_eq(collect(1, &err), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM adoptions"), 3);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM adoptions WHERE step IN (1, 2)"),
		0);
}
END_TEST

START_TEST(collected_objects_are_released_unless_current_or_pinned_elsewhere)
{
	struct error err = {0};
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &step);
	step = run_fixture_prepare(&fixture, 1, true, 0);
	run_fixture_publish_ok(&fixture, &step);
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket",
				 "run/steps/000000/model.safetensors", NULL, &err),
		0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM versions"), 2);
	ck_assert_int_eq(collect(0, &err), 0);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM versions"), 1);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM step_objects"), 1);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM steps WHERE state = 2"), 1);
	struct run_fixture_outcome outcome;
	step = run_fixture_prepare(&fixture, 0, true, 0);
	/* the tombstone still knows it */
	ck_assert_int_eq(run_fixture_publish(&fixture, &step, &outcome, &err), 0);
	ck_assert(outcome.already);
}
END_TEST

START_TEST(retention_keeps_what_the_kept_steps_need)
{
	struct error err = {0};
	ck_assert_int_eq(fixture_call(run_settings_call(fixture.store, &run_fixture_ref,
					      span_text("{\"keep_steps\":3}")),
				 &err),
		0);
	for (unsigned i = 0; i <= 9; i++) {
		struct step_message step =
			run_fixture_prepare(&fixture, i, i % 4 == 0, i == 0 ? 0 : 50);
		run_fixture_publish_ok(&fixture, &step);
	}
	/* head 9, keep 3: steps 7, 8, 9 and the path to 7, from anchor 4 on */
	ck_assert_uint_eq(run_fixture_run(&fixture).steps, 6);
	struct step_message read;
	uint64_t anchor;
	ck_assert_int_eq(run_fixture_find(&fixture, 3, &read, &anchor, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_COLLECTED);
	ck_assert_uint_eq(anchor, 4);
	ck_assert_int_eq(run_fixture_find(&fixture, 4, &read, &anchor, &err), 0);
	const struct path_message way = path(&(struct run_path_params){.want = 7});
	ck_assert_uint_eq(way.link_count, 4);
	fixture.clock.now_ms += 16 * 60 * 1000; /* the steps that the answer named are kept for a while */
	ck_assert_int_eq(fixture_call(run_settings_call(fixture.store, &run_fixture_ref,
					      span_text("{\"keep_steps\":1}")),
				 &err),
		0);
	ck_assert_uint_eq(run_fixture_run(&fixture).steps, 2); /* 8 and 9 */
	ck_assert_uint_eq(run_fixture_run(&fixture).settings.keep_steps, 1);
}
END_TEST

Suite *test_step_collect_suite(void);
Suite *test_step_collect_suite(void)
{
	Suite *const suite = suite_create("step_collect");
	TCase *const tests = tcase_create("step_collect");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, collecting_never_breaks_a_chain);
	tcase_add_test(tests, the_nearest_anchor_that_is_kept_is_told);
	tcase_add_test(tests, what_nothing_is_built_on_any_more_goes_with_its_adoption);
	tcase_add_test(tests, collected_objects_are_released_unless_current_or_pinned_elsewhere);
	tcase_add_test(tests, retention_keeps_what_the_kept_steps_need);
	suite_add_tcase(suite, tests);
	return suite;
}
