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

/* Does what the step worker does when the proof of a step fails. */
static void fail_step(unsigned step)
{
	struct error err = {0};
	ck_assert_int_eq(
		fixture_run(fixture.store,
			arena_format(fixture.arena,
				"UPDATE steps SET verified = 2, verify_error = 'not so' WHERE step = %u",
				step),
			&err),
		0);
}

static uint64_t latest(void)
{
	struct error err = {0};
	struct step_message read;
	ck_assert_msg(
		run_find_latest(fixture.store, &(struct run_latest_params){.run = run_fixture_ref},
			fixture.arena, &read, &err) == 0,
		"%s", err.text);
	return read.step;
}

START_TEST(failed_steps_leave_every_path)
{
	struct error err = {0};
	struct step_message read;
	struct path_message out;
	struct run_path_facts facts;
	uint64_t anchor;
	for (unsigned i = 0; i <= 4; i++) {
		struct step_message step = run_fixture_prepare(&fixture, i, i == 0, i == 0 ? 0 : 5);
		run_fixture_publish_ok(&fixture, &step);
	}
	ck_assert(latest() == 4 && !run_fixture_run(&fixture).anchor_due);
	fail_step(3);
	fail_step(4);
	ck_assert_uint_eq(latest(), 2);
	ck_assert(run_fixture_run(&fixture).anchor_due);
	ck_assert_int_eq(run_find_latest(fixture.store,
				 &(struct run_latest_params){
					 .run = run_fixture_ref, .has_after = true, .after = 2},
				 fixture.arena, &read, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_NOT_READY);
	ck_assert_uint_eq(path(&(struct run_path_params){.want_latest = true}).to_step, 2);
	const struct run_path_params wants_failed = {.run = run_fixture_ref, .want = 3};
	ck_assert_int_eq(
		run_find_path(fixture.store, &wants_failed, fixture.arena, &out, &facts, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_STEP_FAILED);
	ck_assert_int_eq(run_fixture_find(&fixture, 3, &read, &anchor, &err), 0);
	ck_assert(
		read.verified == STEP_PROOF_FAILED && span_equal_text(read.verify_error, "not so"));

	struct step_message cure = run_fixture_prepare(&fixture, 5, true, 20);
	struct run_fixture_outcome outcome;
	ck_assert_int_eq(run_fixture_publish(&fixture, &cure, &outcome, &err), 0);
	ck_assert(!outcome.anchor_due && latest() == 5);
	/* the delta is built on a failed step, so even a reader that claims to hold that step gets
	 * an anchor */
	const struct path_message way =
		path(&(struct run_path_params){.want_latest = true, .has_have = true, .have = 4});
	ck_assert_uint_eq(way.link_count, 1);
	ck_assert_int_eq(way.links[0].form.kind, STEP_ANCHOR);
	struct step_message after = run_fixture_prepare(&fixture, 6, false, 20);
	run_fixture_publish_ok(&fixture, &after);
	ck_assert_uint_eq(
		path(&(struct run_path_params){.want_latest = true, .has_have = true, .have = 5})
			.link_count,
		1);
}
END_TEST

START_TEST(paths_are_the_cheapest)
{
	const size_t anchor_bytes = run_fixture_shard(&fixture, "ab", 0).len;
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &step);
	for (unsigned i = 1; i <= 6; i++) {
		/* step 3 has an anchor and a delta; delta 5 is larger than an anchor */
		step = run_fixture_prepare(&fixture, i, i == 3, i == 5 ? 2000 : 20);
		run_fixture_publish_ok(&fixture, &step);
	}
	struct path_message way = path(&(struct run_path_params){.want_latest = true});
	ck_assert(way.from_nothing);
	ck_assert_uint_eq(way.to_step, 6);
	ck_assert_uint_eq(way.link_count, 4); /* anchor 3, deltas 4, 5, 6 */
	ck_assert_uint_eq(way.links[0].step, 3);
	ck_assert_int_eq(way.links[0].form.kind, STEP_ANCHOR);
	ck_assert_uint_eq(way.bytes, anchor_bytes + 20 + 2000 + 20);
	ck_assert_int_eq(way.links[3].form.kind, STEP_DELTA);
	ck_assert_uint_eq(way.links[3].file_count, 1);
	ck_assert(span_equal_text(
		way.links[3].form.objects[0].url, "steps/6/objects/delta/delta.safetensors"));

	way = path(&(struct run_path_params){.has_have = true,
		.have = 2,
		.has_digest = true,
		.digest = run_fixture_checkpoint(2),
		.want = 4});
	ck_assert(!way.from_nothing);
	ck_assert_uint_eq(way.from_step, 2);
	ck_assert_uint_eq(way.link_count, 2);
	ck_assert_uint_eq(way.bytes, 40);

	way = path(&(struct run_path_params){.has_have = true,
		.have = 2,
		.has_digest = true,
		.digest = run_fixture_checkpoint(9),
		.want = 4});
	ck_assert(way.from_nothing); /* the digest is not that of the step */
	ck_assert_uint_eq(way.links[0].step, 3);

	way = path(&(struct run_path_params){.has_have = true,
		.have = 6,
		.has_digest = true,
		.digest = run_fixture_checkpoint(6),
		.want_latest = true});
	ck_assert_uint_eq(way.link_count, 0);
	ck_assert_uint_eq(way.bytes, 0);
	ck_assert(!way.from_nothing);

	/* deltas lead only upwards */
	way = path(&(struct run_path_params){.has_have = true, .have = 6, .want = 1});
	ck_assert(way.from_nothing);
	ck_assert_uint_eq(way.link_count, 2);
}
END_TEST

START_TEST(an_anchor_is_taken_where_it_is_cheaper_than_the_deltas)
{
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &step);
	for (unsigned i = 1; i <= 2; i++) {
		step = run_fixture_prepare(&fixture, i, i == 2, 5000);
		run_fixture_publish_ok(&fixture, &step);
	}
	const struct path_message way =
		path(&(struct run_path_params){.has_have = true, .have = 0, .want_latest = true});
	ck_assert(way.from_nothing);
	ck_assert_uint_eq(way.link_count, 1);
	ck_assert_uint_eq(way.links[0].step, 2);
}
END_TEST

START_TEST(paths_that_cannot_be)
{
	struct error err = {0};
	struct path_message out;
	struct run_path_facts facts;
	struct run_path_params params = {.run = run_fixture_ref, .want_latest = true};
	ck_assert_int_eq(
		run_find_path(fixture.store, &params, fixture.arena, &out, &facts, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_READY);
	params.run.name = span_text("absent");
	ck_assert_int_eq(
		run_find_path(fixture.store, &params, fixture.arena, &out, &facts, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_RUN);
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &step);
	params = (struct run_path_params){.run = run_fixture_ref, .want = 1};
	ck_assert_int_eq(
		run_find_path(fixture.store, &params, fixture.arena, &out, &facts, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_STEP);
}
END_TEST

Suite *test_step_path_suite(void);
Suite *test_step_path_suite(void)
{
	Suite *const suite = suite_create("step_path");
	TCase *const tests = tcase_create("step_path");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, failed_steps_leave_every_path);
	tcase_add_test(tests, paths_are_the_cheapest);
	tcase_add_test(tests, an_anchor_is_taken_where_it_is_cheaper_than_the_deltas);
	tcase_add_test(tests, paths_that_cannot_be);
	suite_add_tcase(suite, tests);
	return suite;
}
