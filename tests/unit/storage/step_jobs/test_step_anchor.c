#include "tests/unit/unit.h"

#include "storage/step_jobs/step_anchor.h"
#include "storage/step_jobs/step_worker.h"
#include "tests/unit/storage/step_fixture.h"

static struct step_fixture fixture;

static void set_up(void)
{
	step_fixture_open(&fixture);
}

static void tear_down(void)
{
	step_fixture_close(&fixture);
}

static int64_t count(const char *sql)
{
	return fixture_count(fixture.store.store, sql);
}

static void publish_to(unsigned from, unsigned last)
{
	for (unsigned step = from; step <= last; step++)
		step_fixture_publish(
			&fixture, step, step == 0 ? STEP_WITH_ANCHOR : STEP_WITH_DELTA);
}

static const struct {
	const char *key;
	const char *run; /* NULL: it is none */
	uint64_t step;
	const char *file;
} keys[] = {
	{"run/anchors/step_000005/model.safetensors", "run", 5, "model.safetensors"},
	{"r/anchors/step_1234567/sub/config.json", "r", 1234567, "sub/config.json"},
	{"run/anchors/step_000000/x", "run", 0, "x"},
	{"run/anchors/step_5/model.safetensors", NULL, 0, NULL},
	{"run/anchors/step_0000005/model.safetensors", NULL, 0, NULL},
	{"run/anchors/step_000005", NULL, 0, NULL},
	{"run/anchors/step_000005/", NULL, 0, NULL},
	{"run/anchors/step_00000x/model.safetensors", NULL, 0, NULL},
	{"run/anchors/step_99999999999999999999/x", NULL, 0, NULL},
	{"run/anchors/step_9223372036854775808/x", NULL, 0, NULL},
	{"run/anchors/", NULL, 0, NULL},
	{"run/deltas/step_000005/x", NULL, 0, NULL},
	{"/anchors/step_000005/x", NULL, 0, NULL},
	{"anchors/step_000005/x", NULL, 0, NULL},
	{"a/run/anchors/step_000005/x", NULL, 0, NULL},
	{"", NULL, 0, NULL},
};

START_TEST(keys_are_read_and_written)
{
	char again[STEP_ANCHOR_KEY_BYTES];
	struct span run;
	struct span file;
	uint64_t step;
	const bool is_key = step_anchor_key_parse(span_text(keys[_i].key), &run, &step, &file);
	ck_assert_int_eq(is_key, keys[_i].run != NULL);
	if (!is_key)
		return;
	ck_assert(span_equal_text(run, keys[_i].run) && step == keys[_i].step &&
		span_equal_text(file, keys[_i].file));
	step_anchor_key(run, step, file, again);
	ck_assert_str_eq(again, keys[_i].key);
}
END_TEST

START_TEST(a_wrong_delta_fails_with_all_that_is_built_on_it)
{
	struct error err = {0};
	publish_to(0, 1);
	step_fixture_publish(&fixture, 2, STEP_WRONG_DELTA);
	step_fixture_publish(&fixture, 3, STEP_WITH_DELTA);
	step_fixture_publish(&fixture, 4, STEP_WITH_DELTA | STEP_WITH_ANCHOR);
	step_fixture_publish(&fixture, 5, STEP_WITH_DELTA);
	ck_assert_int_eq(step_fixture_verified(&fixture, 2), STEP_PROOF_PENDING);
	ck_assert_uint_eq(step_fixture_settle(&fixture), 0);
	static const enum step_proof want[] = {STEP_PROOF_OK, STEP_PROOF_OK, STEP_PROOF_FAILED,
		STEP_PROOF_FAILED, STEP_PROOF_OK, STEP_PROOF_OK};
	for (unsigned step = 0; step < 6; step++) {
		ck_assert_int_eq(step_fixture_verified(&fixture, step), want[step]);
		ck_assert_int_eq(
			step_fixture_is_whole(&fixture, step), want[step] == STEP_PROOF_OK);
	}
	store_fixture_reopen(&fixture.store); /* a requested job that failed is forgotten */
	/* as if the step were pinned: the anchor is not tried again and again */
	ck_assert_int_eq(fixture_run(fixture.store.store,
				 "UPDATE steps SET wants_made = 1 WHERE step = 3", &err),
		0);
	ck_assert_uint_eq(step_fixture_settle(&fixture), 0);
}
END_TEST

/* Its delta cannot be tried, and is not needed. */
START_TEST(an_anchor_is_enough_when_the_step_before_is_gone)
{
	struct error err = {0};
	publish_to(0, 1);
	step_fixture_publish(&fixture, 2, STEP_WITH_DELTA | STEP_WITH_ANCHOR);
	ck_assert_int_eq(
		fixture_run(fixture.store.store, "UPDATE steps SET state = 1 WHERE step = 1", &err),
		0);
	ck_assert_uint_eq(step_fixture_settle(&fixture), 0);
	ck_assert_int_eq(step_fixture_verified(&fixture, 2), STEP_PROOF_OK);
}
END_TEST

/* The step before is as it should be: a delta that leads elsewhere is a fault of its own step. */
START_TEST(an_anchor_does_not_make_up_for_a_wrong_delta)
{
	publish_to(0, 1);
	step_fixture_publish(&fixture, 2, STEP_WRONG_DELTA | STEP_WITH_ANCHOR);
	ck_assert_uint_eq(step_fixture_settle(&fixture), 0);
	ck_assert_int_eq(step_fixture_verified(&fixture, 2), STEP_PROOF_FAILED);
}
END_TEST

START_TEST(what_nobody_proves_is_tried_once)
{
	struct error err = {0};
	publish_to(0, 1);
	step_fixture_publish(&fixture, 2, STEP_WRONG_DELTA);
	ck_assert_int_eq(
		fixture_run(fixture.store.store,
			"UPDATE steps SET verified = 3, wants_made = CASE step WHEN 2 THEN 1 END",
			&err),
		0);
	ck_assert_uint_eq(step_fixture_settle(&fixture), 1);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM steps WHERE wants_made IS NOT NULL"), 0);
}
END_TEST

START_TEST(no_anchor_is_more_than_two_derivations_deep)
{
	publish_to(0, 0);
	for (unsigned step = 1; step <= 40; step++) {
		publish_to(step, step);
		ck_assert_uint_eq(step_fixture_settle(&fixture), 0);
		ck_assert_int_eq(count("SELECT COUNT(*) FROM steps WHERE wants_made = 1"), 1);
		ck_assert_int_eq(
			count("SELECT COUNT(*) FROM steps WHERE made IS NULL AND wants_made = 1"),
			0);
		ck_assert_int_le(count("SELECT COALESCE(MAX(depth), 0) FROM derivations"), 2);
	}
	ck_assert_int_eq(count("SELECT MAX(depth) FROM derivations"), 2);
	ck_assert_int_eq(
		count("SELECT COUNT(*) FROM versions WHERE state = 1 AND CAST(key AS TEXT) LIKE 'run/anchors/%'"),
		1);
	for (unsigned step = 0; step <= 40; step += 5)
		ck_assert_msg(step_fixture_is_whole(&fixture, step), "step %u", step);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM scratch_versions"), 0);
}
END_TEST

/* As if the upload below it had become a derived version while the anchor was built. */
START_TEST(an_anchor_that_is_deeper_than_it_was_meant_to_be_is_no_base)
{
	struct error err = {0};
	for (unsigned step = 0; step <= 20; step++) {
		publish_to(step, step);
		ck_assert_uint_eq(step_fixture_settle(&fixture), 0);
	}
	ck_assert_int_gt(count("SELECT COUNT(*) FROM derivations WHERE depth = 1"), 0);
	ck_assert_int_eq(
		fixture_run(fixture.store.store, "UPDATE derivations SET depth = 2", &err), 0);
	publish_to(21, 21);
	ck_assert_uint_eq(step_fixture_settle(&fixture), 0);
	ck_assert_int_eq(
		count("SELECT COUNT(*) FROM steps WHERE made IS NULL AND wants_made = 1"), 0);
	ck_assert(step_fixture_is_whole(&fixture, 21));
}
END_TEST

/* Anchors copy them from each other. Each copy is made of the first one, not of the last. */
START_TEST(files_beside_the_weights_are_no_deeper_than_these)
{
	fixture.are_folders = true;
	publish_to(0, 0);
	for (unsigned step = 1; step <= 40; step++) {
		publish_to(step, step);
		ck_assert_uint_eq(step_fixture_settle(&fixture), 0);
		ck_assert_int_eq(
			count("SELECT COUNT(*) FROM steps WHERE made IS NOT NULL AND wants_made = 1"),
			1);
	}
	ck_assert_int_eq(count("SELECT MAX(depth) FROM derivations"), 2);
	ck_assert_int_eq(
		count("SELECT COUNT(*) FROM versions WHERE state = 1 AND CAST(key AS TEXT) LIKE 'run/anchors/%'"),
		2);
	ck_assert(step_fixture_is_whole(&fixture, 40));
}
END_TEST

START_TEST(what_nothing_wants_is_dropped_and_what_alone_leads_to_a_step_stays)
{
	struct error err = {0};
	publish_to(0, 5);
	step_fixture_settle(&fixture);
	ck_assert(step_fixture_is_whole(&fixture, 2) && step_fixture_is_whole(&fixture, 3));
	ck_assert_int_eq(count("SELECT COUNT(*) FROM steps WHERE made IS NOT NULL"), 3);
	ck_assert_int_eq(
		fixture_run(fixture.store.store, "UPDATE steps SET made_until_ms = 0", &err), 0);
	/* as if retention had removed what is below step 2, because that is whole */
	ck_assert_int_eq(
		fixture_run(fixture.store.store, "UPDATE steps SET state = 1 WHERE step < 2", &err),
		0);
	ck_assert_uint_eq(step_fixture_settle(&fixture), 0);
	ck_assert_int_eq(
		count("SELECT COUNT(*) FROM steps WHERE made IS NOT NULL AND step IN (2, 5)"), 2);
	ck_assert_int_eq(
		count("SELECT COUNT(*) FROM steps WHERE made IS NOT NULL AND step = 3"), 0);
	fixture_sweep(fixture.store.store);
	for (unsigned step = 2; step <= 5; step++)
		ck_assert_msg(step_fixture_is_whole(&fixture, step), "step %u", step);
}
END_TEST

START_TEST(without_a_base_an_anchor_is_stored)
{
	struct error err = {0};
	publish_to(0, 4);
	step_fixture_settle(&fixture);
	ck_assert_int_eq(
		fixture_run(fixture.store.store, "UPDATE steps SET made = 2 WHERE step = 4", &err),
		0);
	ck_assert_int_eq(
		fixture_run(fixture.store.store, "UPDATE steps SET state = 1 WHERE step < 4", &err),
		0);
	fixture_sweep(fixture.store.store);
	publish_to(5, 6);
	ck_assert_uint_eq(step_fixture_settle(&fixture), 0);
	ck_assert_int_eq(count("SELECT made FROM steps WHERE step = 6"), 0);
	for (unsigned step = 4; step <= 6; step++)
		ck_assert_msg(step_fixture_is_whole(&fixture, step), "step %u", step);
	ck_assert_int_eq(fixture_run(fixture.store.store,
				 "UPDATE steps SET wants_made = 2 WHERE step = 5", &err),
		0);
	ck_assert_uint_eq(step_fixture_settle(&fixture), 0);
	ck_assert_int_eq(count("SELECT made FROM steps WHERE step = 5"), 0);
	ck_assert(step_fixture_is_whole(&fixture, 5));
	ck_assert_int_eq(count("SELECT COUNT(*) FROM scratch_versions"), 0);
}
END_TEST

START_TEST(objects_that_were_there_before_the_run_are_not_covered)
{
	struct error err = {0};
	const char *const key = "run/anchors/step_000001/model.safetensors";
	struct run_anchor anchor;
	struct object object;
	ck_assert_int_eq(
		fixture_run(fixture.store.store, "UPDATE runs SET name = 'later'", &err), 0);
	ck_assert_int_eq(
		fixture_put(fixture.store.store, "bucket", key, span_text("mine"), &err), 0);
	ck_assert_int_eq(fixture_run(fixture.store.store,
				 "UPDATE runs SET name = CAST('run' AS BLOB)", &err),
		0);
	ck_assert_int_eq(
		fixture_put(fixture.store.store, "bucket", key, span_text("more"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DENIED);
	publish_to(0, 1);
	ck_assert_uint_eq(step_fixture_settle(&fixture), 0);
	ck_assert_int_eq(count("SELECT made FROM steps WHERE step = 1"), 1);
	ck_assert(fixture_holds(&fixture.store, "bucket", key, span_text("mine")));
	ck_assert(step_fixture_is_whole(&fixture, 1)); /* through the step */
	const struct object_ref absent = {
		.bucket = fixture_bucket("bucket"), .key = span_text("run/anchors/step_000009/x")};
	ck_assert_int_eq(run_find_anchor_key(fixture.store.store, &absent, fixture.store.arena,
				 &object, &anchor, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
}
END_TEST

START_TEST(a_restart_goes_on)
{
	publish_to(0, 3);
	store_fixture_reopen(&fixture.store);
	ck_assert_uint_eq(step_fixture_settle(&fixture), 0);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM steps WHERE verified = 1"), 4);
	store_fixture_reopen(&fixture.store);
	for (unsigned step = 0; step <= 3; step++)
		ck_assert_msg(step_fixture_is_whole(&fixture, step), "step %u", step);
}
END_TEST

START_TEST(asking_is_refused_for_what_failed)
{
	struct error err = {0};
	publish_to(0, 2);
	step_fixture_settle(&fixture);
	const struct run_anchor nowhere = {.run = 999, .id = 999, .step = 7};
	ck_assert_int_eq(run_ask_anchor(fixture.store.store, &nowhere, &err), 0);
	ck_assert_uint_eq(step_fixture_settle(&fixture), 0); /* not there: nothing to do */
	/* its base cannot be read */
	ck_assert_int_eq(fixture_run(fixture.store.store,
				 "UPDATE steps SET made = NULL, wants_made = NULL", &err),
		0);
	ck_assert_int_eq(
		fixture_run(fixture.store.store, "DELETE FROM step_objects WHERE form = 2", &err),
		0);
	ck_assert_int_eq(fixture_run(fixture.store.store,
				 "UPDATE step_objects SET version = 9999 WHERE form = 0", &err),
		0);
	const struct run_anchor broken = {
		.run = 1, .id = count("SELECT id FROM steps WHERE step = 2"), .step = 2};
	ck_assert_int_eq(run_ask_anchor(fixture.store.store, &broken, &err), 0);
	ck_assert_uint_eq(step_fixture_settle(&fixture), 1);
	ck_assert_int_eq(run_ask_anchor(fixture.store.store, &broken, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	step_worker_quiesce(store_parts(fixture.store.store)->step_worker);
	ck_assert_int_eq(run_ask_anchor(fixture.store.store, &nowhere, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
}
END_TEST

Suite *test_step_anchor_suite(void);
Suite *test_step_anchor_suite(void)
{
	Suite *const suite = suite_create("step_anchor");
	TCase *const tests = tcase_create("all");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 60);
	tcase_add_loop_test(tests, keys_are_read_and_written, 0, sizeof(keys) / sizeof(keys[0]));
	tcase_add_test(tests, a_wrong_delta_fails_with_all_that_is_built_on_it);
	tcase_add_test(tests, an_anchor_is_enough_when_the_step_before_is_gone);
	tcase_add_test(tests, an_anchor_does_not_make_up_for_a_wrong_delta);
	tcase_add_test(tests, what_nobody_proves_is_tried_once);
	tcase_add_test(tests, no_anchor_is_more_than_two_derivations_deep);
	tcase_add_test(tests, an_anchor_that_is_deeper_than_it_was_meant_to_be_is_no_base);
	tcase_add_test(tests, files_beside_the_weights_are_no_deeper_than_these);
	tcase_add_test(tests, what_nothing_wants_is_dropped_and_what_alone_leads_to_a_step_stays);
	tcase_add_test(tests, without_a_base_an_anchor_is_stored);
	tcase_add_test(tests, objects_that_were_there_before_the_run_are_not_covered);
	tcase_add_test(tests, a_restart_goes_on);
	tcase_add_test(tests, asking_is_refused_for_what_failed);
	suite_add_tcase(suite, tests);
	return suite;
}
