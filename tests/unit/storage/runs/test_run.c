#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/thread/step_watch.h"
#include "storage/core/store.h"
#include "storage/run_tables/replica_table.h"
#include "storage/runs/replica.h"
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

static const struct {
	const char *name;
	bool good;
} names[] = {
	{"run", true},
	{"Run-7_b.v2", true},
	{"7", true},
	{"_x", true},
	{"", false},
	{".hidden", false},
	{"-flag", false},
	{"a/b", false},
	{"a b", false},
	{"ä", false},
	{"1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567x",
		true},
	{"1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567xx",
		false},
};

START_TEST(names_are_checked)
{
	struct error err = {0};
	ck_assert_int_eq(run_check_name(span_text(names[_i].name), &err), names[_i].good ? 0 : -1);
	ck_assert_int_eq(err.kind, names[_i].good ? ERROR_NONE : ERROR_INVALID);
}
END_TEST

START_TEST(each_open_raises_the_epoch)
{
	struct error err = {0};
	struct run_message run;
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "other", &run, &err), 0);
	ck_assert_uint_eq(run.epoch, 1);
	ck_assert(!run.has_head && !run.has_schema);
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "other", &run, &err), 0);
	ck_assert_uint_eq(run.epoch, 2);
	ck_assert_int_eq(fixture_open_run(fixture.store, "absent", "other", &run, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "no/good", &run, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

START_TEST(an_expected_epoch_guards_against_opening_twice)
{
	struct error err = {0};
	struct run_open_params params = {
		.run = run_fixture_ref, .has_expected_epoch = true, .expected_epoch = 1};
	ck_assert_int_eq(fixture_call(run_open_call(fixture.store, &params), &err), 0);
	ck_assert_int_eq(fixture_call(run_open_call(fixture.store, &params), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_PRECONDITION);
	ck_assert_uint_eq(run_fixture_run(&fixture).epoch, 2);
}
END_TEST

START_TEST(ending_a_run_frees_its_name_and_then_its_objects)
{
	struct error err = {0};
	for (unsigned i = 0; i < 3; i++) {
		struct step_message step =
			run_fixture_prepare(&fixture, i, i == 0, i == 0 ? 0 : 3000);
		run_fixture_publish_ok(&fixture, &step);
	}
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket",
				 "run/steps/000001/delta.safetensors", NULL, &err),
		0);
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "bucket", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUCKET_HAS_RUNS);
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"INSERT INTO step_views (step, kind, state) SELECT id, 0, 1 FROM steps",
			&err),
		0);
	ck_assert_int_eq(fixture_call(run_delete_call(fixture.store, &run_fixture_ref), &err), 0);
	struct run_message run;
	ck_assert_int_eq(run_find(fixture.store, &run_fixture_ref, fixture.arena, &run, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_RUN);
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "run", &run, &err), 0);
	ck_assert_uint_eq(run.epoch, 1);
	ck_assert(!run.has_head);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM steps"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM step_objects"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM step_views"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM step_manifests"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM run_schemas"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM runs"), 1);
	/* the current settings stay */
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM versions"), 2);
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &step);
}
END_TEST

START_TEST(runs_are_listed_in_order)
{
	struct error err = {0};
	struct run_message *runs;
	size_t count;
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "a", NULL, &err), 0);
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "z", NULL, &err), 0);
	ck_assert_int_eq(run_list(fixture.store,
				 &(struct run_scan){.bucket = fixture_bucket("bucket"), .limit = 2},
				 fixture.arena, &runs, &count, &err),
		0);
	ck_assert_uint_eq(count, 2);
	ck_assert(span_equal_text(runs[0].run, "a") && span_equal_text(runs[1].run, "run"));
	ck_assert_int_eq(run_list(fixture.store,
				 &(struct run_scan){.bucket = fixture_bucket("bucket"),
					 .after = span_text("run"),
					 .limit = 2},
				 fixture.arena, &runs, &count, &err),
		0);
	ck_assert_uint_eq(count, 1);
	ck_assert(span_equal_text(runs[0].run, "z"));
	ck_assert_int_eq(run_list(fixture.store,
				 &(struct run_scan){.bucket = fixture_bucket("absent"), .limit = 2},
				 fixture.arena, &runs, &count, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
}
END_TEST

static int open_with(bool has_keep, uint64_t keep_steps, struct error *err)
{
	const struct run_open_params params = {
		.run = run_named(span_text("bucket"), span_text("new")),
		.has_keep_steps = has_keep,
		.keep_steps = keep_steps};
	struct call *const call = run_open_call(fixture.store, &params);
	const int result = call_run(call, err);
	const uint64_t kept = run_open_result(call)->settings.keep_steps;
	call_free(call);
	return result != 0 ? -1 : (int)kept;
}

START_TEST(opening_says_how_many_steps_are_kept)
{
	struct error err = {0};
	ck_assert_int_eq(open_with(true, (uint64_t)INT64_MAX + 1, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_int_eq(open_with(true, 5, &err), 5);
	ck_assert_int_eq(open_with(false, 0, &err), 5);
	ck_assert_int_eq(open_with(true, 9, &err), 9);
	ck_assert_int_eq(open_with(false, 0, &err), 9);
	ck_assert_uint_eq(run_fixture_run(&fixture).settings.keep_steps, RUN_KEEP_STEPS_DEFAULT);
}
END_TEST

static int set(const char *settings, struct error *err)
{
	return fixture_call(
		run_settings_call(fixture.store, &run_fixture_ref, span_text(settings)), err);
}

START_TEST(settings_that_keep_fewer_steps_take_the_others_at_once)
{
	struct error err = {0};
	for (unsigned i = 0; i < 10; i++) {
		const struct step_message step = run_fixture_prepare(&fixture, i, true, 0);
		run_fixture_publish_ok(&fixture, &step);
	}
	ck_assert_int_eq(set("{\"keep_steps\":3}", &err), 0);
	ck_assert_uint_eq(run_fixture_run(&fixture).steps, 3);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT MIN(step) FROM steps WHERE state = 0"), 7);
}
END_TEST

START_TEST(a_view_does_not_take_keys_that_others_have)
{
	struct error err = {0};
	run_fixture_put(&fixture, "run/deltas/step_000000.safetensors", span_text("mine"));
	ck_assert_int_eq(set("{\"view_trl\":true}", &err), -1);
	ck_assert(!run_fixture_run(&fixture).settings.view_trl);
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket",
				 "run/deltas/step_000000.safetensors", NULL, &err),
		0);
	ck_assert_int_eq(set("{\"view_trl\":true}", &err), 0);
	ck_assert(run_fixture_run(&fixture).settings.view_trl);
}
END_TEST

/* The server's options allow no host. */
START_TEST(a_webhook_is_checked_when_it_is_set)
{
	struct error err = {0};
	ck_assert_int_eq(set("{\"webhook\":\"https://elsewhere.example/x\"}", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DENIED);
	ck_assert_str_eq(run_fixture_run(&fixture).settings.webhook, "");
}
END_TEST

START_TEST(ending_a_run_wakes_and_forgets_those_that_follow_it)
{
	struct error err = {0};
	struct replica_message replica;
	const struct replica_ref ref = {run_fixture_ref, span_text("w")};
	const struct replica_message said = {.state = REPLICA_IDLE};
	ck_assert_int_eq(replica_put(fixture.store, &ref, &said, fixture.arena, &replica, &err), 0);
	const uint64_t seen = step_watch_generation(
		store_step_watch(fixture.store), span_text("bucket"), span_text("run"));
	ck_assert_int_eq(fixture_call(run_delete_call(fixture.store, &run_fixture_ref), &err), 0);
	ck_assert_uint_ne(step_watch_generation(store_step_watch(fixture.store),
				  span_text("bucket"), span_text("run")),
		seen);
	ck_assert_uint_eq(replica_table_count(store_parts(fixture.store)->replicas), 0);
}
END_TEST

START_TEST(a_damaged_schema_is_found)
{
	struct error err = {0};
	const struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &step);
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"UPDATE run_schemas SET schema = replace(CAST(schema AS TEXT), 'U8', 'I8')",
			&err),
		0);
	const struct step_message next = run_fixture_prepare(&fixture, 1, false, 50);
	run_fixture_publish_refused(&fixture, &next, ERROR_CORRUPT);
}
END_TEST

Suite *test_run_suite(void);
Suite *test_run_suite(void)
{
	Suite *const suite = suite_create("run");
	TCase *const plain = tcase_create("names");
	tcase_add_loop_test(plain, names_are_checked, 0, sizeof(names) / sizeof(names[0]));
	suite_add_tcase(suite, plain);
	TCase *const tests = tcase_create("run");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, each_open_raises_the_epoch);
	tcase_add_test(tests, an_expected_epoch_guards_against_opening_twice);
	tcase_add_test(tests, ending_a_run_frees_its_name_and_then_its_objects);
	tcase_add_test(tests, runs_are_listed_in_order);
	tcase_add_test(tests, opening_says_how_many_steps_are_kept);
	tcase_add_test(tests, settings_that_keep_fewer_steps_take_the_others_at_once);
	tcase_add_test(tests, a_view_does_not_take_keys_that_others_have);
	tcase_add_test(tests, a_webhook_is_checked_when_it_is_set);
	tcase_add_test(tests, ending_a_run_wakes_and_forgets_those_that_follow_it);
	tcase_add_test(tests, a_damaged_schema_is_found);
	suite_add_tcase(suite, tests);
	return suite;
}
