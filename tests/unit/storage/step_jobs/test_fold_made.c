/* Folds that the step worker makes of real checkpoints lead to the exact files of the step. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/metrics.h"
#include "base/thread/step_watch.h"
#include "storage/step_jobs/step_worker.h"
#include "tests/unit/storage/model_fixture.h"
#include "tests/unit/storage/run_fixture.h"

static struct model_fixture fixture;
static struct metrics *metrics;

static void set_up(void)
{
	memset(&fixture, 0, sizeof(fixture));
	metrics = metrics_new();
	fixture.store.metrics = metrics;
	model_fixture_open(&fixture);
}

static void tear_down(void)
{
	model_fixture_close(&fixture);
	metrics_free(metrics);
}

static int64_t count(const char *sql)
{
	return fixture_count(fixture.store.store, sql);
}

static struct step_form anchor_of(unsigned step, const char *path)
{
	return model_fixture_put(&fixture, path,
		arena_format(fixture.store.arena, "run/steps/%u/", step), STEP_ANCHOR, "full");
}

static struct step_form delta_of(unsigned step)
{
	return model_fixture_put(&fixture,
		model_fixture_diff(&fixture, step - 1, step, DELTA_ULP_CLASS),
		arena_format(fixture.store.arena, "run/deltas/%u/", step), STEP_DELTA, "ulp-class");
}

/* With a delta, with an anchor, or, with neither flag, with the form that it must have. */
static void publish(unsigned step, const char *config, const char *name, bool with_anchor)
{
	struct step_form forms[2];
	size_t forms_count = 0;
	const char *const path = model_fixture_make(&fixture, step, config);
	if (with_anchor || step == 0)
		forms[forms_count++] = anchor_of(step, path);
	if (step > 0 && !with_anchor)
		forms[forms_count++] = delta_of(step);
	model_fixture_publish(&fixture, step, name, forms, forms_count);
}

/* Puts the fold's files into a folder. */
static char *fetch(unsigned from, unsigned to, const char *const *names, size_t names_count)
{
	struct error err = {0};
	char *const folder =
		arena_format(fixture.store.arena, "%s/fold-%u-%u", fixture.folder, from, to);
	for (size_t i = 0; i < names_count; i++) {
		struct object object;
		ck_assert_msg(run_find_fold_object(fixture.store.store,
				      &(struct run_fold_ref){
					      run_fixture_ref, from, to, span_text(names[i])},
				      fixture.store.arena, &object, &err) == 0,
			"%s: %s", names[i], err.text);
		model_fixture_fetch(&fixture, &object, folder, names[i]);
	}
	return folder;
}

static const char *const DELTA_AND_CONFIG[] = {"delta.safetensors", "files/config.json"};

static uint64_t generation(void)
{
	return step_watch_generation(store_step_watch(fixture.store.store), span_text("bucket"),
		run_folds_topic(span_text("run"), fixture.store.arena));
}

static size_t scratch_folders(void)
{
	struct error err = {0};
	char **names;
	size_t names_count;
	const char *const path =
		arena_format(fixture.store.arena, "%s/scratch", fixture.store.folder);
	ck_assert_msg(file_list(path, &names, &names_count, &err) == 0, "%s", err.text);
	file_names_free(names, names_count);
	return names_count;
}

START_TEST(a_fold_over_deltas_makes_the_very_files)
{
	for (unsigned step = 0; step <= 4; step++)
		publish(step, step < 2 ? "{\"v\":1}" : "{\"v\":2}", NULL, false);
	const uint64_t seen = generation();
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	ck_assert_uint_ne(generation(), seen);
	ck_assert_int_eq(
		count("SELECT COUNT(*) FROM folds WHERE state = 1 AND from_step = 0 AND to_step = 4"),
		1);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM scratch_versions"), 0);
	ck_assert_uint_eq(scratch_folders(), 0);
	ck_assert_int_eq(metrics_get(metrics, METRIC_FOLDS_MADE), 1);
	const char *const fold = fetch(0, 4, DELTA_AND_CONFIG, 2);
	const char *const made =
		model_fixture_apply(&fixture, model_fixture_make(&fixture, 0, NULL), fold);
	ck_assert(model_fixture_same(&fixture, made, model_fixture_make(&fixture, 4, NULL)));
}
END_TEST

/* The config of a step that is read from its anchor lies only in the store. */
START_TEST(a_fold_to_an_anchor_brings_what_the_anchor_changed)
{
	for (unsigned step = 0; step <= 4; step++)
		publish(step, step < 4 ? "{\"v\":1}" : "{\"v\":2}", NULL, step == 4);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	const char *const fold = fetch(0, 4, DELTA_AND_CONFIG, 2);
	const char *const made =
		model_fixture_apply(&fixture, model_fixture_make(&fixture, 0, NULL), fold);
	ck_assert(model_fixture_same(&fixture, made, model_fixture_make(&fixture, 4, NULL)));
}
END_TEST

START_TEST(a_fold_does_not_bring_what_stays)
{
	for (unsigned step = 0; step <= 4; step++)
		publish(step, "{\"v\":1}", NULL, step == 4);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM fold_objects"), 1);
	const char *const fold = fetch(0, 4, DELTA_AND_CONFIG, 1);
	const char *const made =
		model_fixture_apply(&fixture, model_fixture_make(&fixture, 0, NULL), fold);
	ck_assert(model_fixture_same(&fixture, made, model_fixture_make(&fixture, 4, NULL)));
}
END_TEST

static void rename_model(const char *folder, const char *name)
{
	const char *const from = arena_format(fixture.store.arena, "%s/model.safetensors", folder);
	ck_assert_int_eq(rename(from, arena_format(fixture.store.arena, "%s/%s", folder, name)), 0);
}

/* Readers have it as a folder with the file that the manifest names. */
START_TEST(a_fold_of_one_file_goes_by_the_name_in_the_manifest)
{
	for (unsigned step = 0; step <= 4; step++)
		publish(step, NULL, "weights.safetensors", false);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	const char *const fold = fetch(0, 4, DELTA_AND_CONFIG, 1);
	const char *const base = model_fixture_make(&fixture, 0, NULL);
	const char *const next = model_fixture_make(&fixture, 4, NULL);
	rename_model(base, "weights.safetensors");
	rename_model(next, "weights.safetensors");
	ck_assert(model_fixture_same(&fixture, model_fixture_apply(&fixture, base, fold), next));
}
END_TEST

START_TEST(a_fold_says_between_which_steps_it_lies)
{
	struct error err = {0};
	struct delta_summary summary;
	for (unsigned step = 0; step <= 8; step++)
		publish(step, NULL, NULL, false);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	const char *const path = arena_format(
		fixture.store.arena, "%s/delta.safetensors", fetch(4, 8, DELTA_AND_CONFIG, 1));
	ck_assert_msg(delta_inspect(path, &summary, &err) == 0, "%s", err.text);
	const struct digest128 base = model_fixture_digest(&fixture, 4);
	const struct digest128 result = model_fixture_digest(&fixture, 8);
	ck_assert(summary.step == 8 && summary.base_step == 4);
	ck_assert(digest128_equal(&summary.base_digest, &base) &&
		digest128_equal(&summary.result_digest, &result));
}
END_TEST

/* No step is proven here; the delta of step 4 makes the model of step 5. */
START_TEST(no_fold_is_made_to_what_a_step_is_not)
{
	struct error err = {0};
	ck_assert_int_eq(
		fixture_run(fixture.store.store,
			"UPDATE runs SET settings = CAST('{\"verify\":false}' AS BLOB)", &err),
		0);
	for (unsigned step = 0; step <= 3; step++)
		publish(step, NULL, NULL, false);
	model_fixture_make(&fixture, 4, NULL);
	model_fixture_make(&fixture, 5, NULL);
	const struct step_form form =
		model_fixture_put(&fixture, model_fixture_diff(&fixture, 3, 5, DELTA_ULP_CLASS),
			"run/deltas/4/", STEP_DELTA, "ulp-class");
	model_fixture_publish(&fixture, 4, NULL, &form, 1);
	(void)model_fixture_settle(&fixture);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM folds WHERE state = 2"), 1);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM fold_objects"), 0);
}
END_TEST

/* Step 4 is not the checkpoint that it was published as. From step 8 on an anchor leads on. */
START_TEST(no_fold_begins_or_ends_at_a_step_whose_proof_failed)
{
	struct error err = {0};
	for (unsigned step = 0; step <= 8; step++)
		publish(step, NULL, NULL, step == 8);
	ck_assert_int_eq(
		fixture_run(fixture.store.store,
			"UPDATE steps SET verified = CASE WHEN step BETWEEN 4 AND 7 THEN 2 ELSE 1 END",
			&err),
		0);
	const uint64_t seen = generation();
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	ck_assert_uint_ne(generation(), seen);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM folds WHERE state = 2"), 2);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM folds"), 2);
	ck_assert_int_eq(metrics_get(metrics, METRIC_FOLDS_REFUSED), 2);
	ck_assert_int_eq(metrics_get(metrics, METRIC_FOLDS_MADE), 0);
}
END_TEST

/* The scratch folder cannot be made now. That passes, and the fold is made when it is requested
 * again. */
START_TEST(a_fold_that_cannot_be_made_now_is_made_later)
{
	struct error err = {0};
	const char *const scratch =
		arena_format(fixture.store.arena, "%s/scratch", fixture.store.folder);
	for (unsigned step = 0; step <= 8; step++)
		publish(step, NULL, NULL, true);
	ck_assert_int_eq(
		fixture_run(fixture.store.store, "UPDATE steps SET verified = 1", &err), 0);
	ck_assert_int_eq(file_remove_tree(file_system(), scratch, &err), 0);
	ck_assert_int_eq(
		file_place(file_system(), scratch, span_text("in the way"), 0600, &err), 0);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 2);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM folds WHERE state = 0"), 2);
	ck_assert_int_eq(metrics_get(metrics, METRIC_FOLDS_REFUSED), 0);
	ck_assert_int_eq(metrics_get(metrics, METRIC_STEP_JOBS_FAILED), 2);
	ck_assert_int_eq(metrics_get(metrics, METRIC_STEP_JOBS_ASIDE), 2);
	ck_assert_uint_eq(metrics_work_count(metrics, METRIC_WORK_FOLD), 0);
	ck_assert_int_eq(file_remove_tree(file_system(), scratch, &err), 0);
	ck_assert_int_eq(file_make_folder(file_system(), scratch, 0700, &err), 0);
	store_fixture_reopen(&fixture.store);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM folds WHERE state = 1"), 2);
	ck_assert_uint_eq(metrics_work_count(metrics, METRIC_WORK_FOLD), 2);
	ck_assert_int_eq(metrics_get(metrics, METRIC_STEP_JOBS_ASIDE), 0);
}
END_TEST

Suite *test_fold_made_suite(void);
Suite *test_fold_made_suite(void)
{
	Suite *const suite = suite_create("fold_made");
	TCase *const tests = tcase_create("fold_made");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 30);
	tcase_add_test(tests, a_fold_over_deltas_makes_the_very_files);
	tcase_add_test(tests, a_fold_to_an_anchor_brings_what_the_anchor_changed);
	tcase_add_test(tests, a_fold_does_not_bring_what_stays);
	tcase_add_test(tests, a_fold_of_one_file_goes_by_the_name_in_the_manifest);
	tcase_add_test(tests, a_fold_says_between_which_steps_it_lies);
	tcase_add_test(tests, no_fold_is_made_to_what_a_step_is_not);
	tcase_add_test(tests, no_fold_begins_or_ends_at_a_step_whose_proof_failed);
	tcase_add_test(tests, a_fold_that_cannot_be_made_now_is_made_later);
	suite_add_tcase(suite, tests);
	return suite;
}
