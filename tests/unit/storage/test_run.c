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

static const struct {
	const char *name;
	bool good;
} names[] = {
	{"run", true}, {"Run-7_b.v2", true}, {"7", true}, {"_x", true}, {"", false}, {".hidden", false}, {"-flag", false}, {"a/b", false},
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
	struct run_open_params params = {.bucket = span_text("bucket"), .run = span_text("run"), .has_expected_epoch = true,
		.expected_epoch = 1};
	struct settled *settled = settled_new();
	ck_assert_int_eq(fixture_settle_run(run_open_start(fixture.store, &params, settled_done, settled), settled, NULL, &err), 0);
	settled = settled_new();
	ck_assert_int_eq(fixture_settle_run(run_open_start(fixture.store, &params, settled_done, settled), settled, NULL, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_PRECONDITION);
	ck_assert_uint_eq(run_fixture_run(&fixture).epoch, 2);
}
END_TEST

START_TEST(ending_a_run_frees_its_name_and_then_its_objects)
{
	struct error err = {0};
	for (unsigned i = 0; i < 3; i++) {
		struct step_message step = run_fixture_prepare(&fixture, i, i == 0, i == 0 ? 0 : 3000);
		run_fixture_publish_ok(&fixture, &step);
	}
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "run/steps/000001/delta.safetensors", NULL, &err), 0);
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "bucket", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUCKET_HAS_RUNS);
	ck_assert_int_eq(fixture_run(fixture.store, "INSERT INTO step_views (step, kind, state) SELECT id, 0, 1 FROM steps", &err), 0);
	struct settled *const settled = settled_new();
	ck_assert_int_eq(fixture_settle_run(run_delete_start(fixture.store, span_text("bucket"), span_text("run"), settled_done, settled),
		settled, NULL, &err), 0);
	struct run_message run;
	ck_assert_int_eq(run_find(fixture.store, span_text("bucket"), span_text("run"), fixture.arena, &run, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_RUN);
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "run", &run, &err), 0);
	ck_assert_uint_eq(run.epoch, 1);
	ck_assert(!run.has_head);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM steps"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM step_objects"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM step_views"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM run_schemas"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM runs"), 1);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM versions"), 2); /* the current ones stay */
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
	ck_assert_int_eq(run_list(fixture.store, span_text("bucket"), span_text(""), 2, fixture.arena, &runs, &count, &err), 0);
	ck_assert_uint_eq(count, 2);
	ck_assert(span_equal_text(runs[0].run, "a") && span_equal_text(runs[1].run, "run"));
	ck_assert_int_eq(run_list(fixture.store, span_text("bucket"), span_text("run"), 2, fixture.arena, &runs, &count, &err), 0);
	ck_assert_uint_eq(count, 1);
	ck_assert(span_equal_text(runs[0].run, "z"));
	ck_assert_int_eq(run_list(fixture.store, span_text("absent"), span_text(""), 2, fixture.arena, &runs, &count, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
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
	suite_add_tcase(suite, tests);
	return suite;
}
