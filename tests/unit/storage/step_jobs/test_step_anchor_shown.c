/* Made anchors by key and by step: what the keys show, whom the keys belong to, and what a failed
 * proof hides. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/objects/object_read.h"
#include "storage/runs/pin.h"
#include "storage/step_jobs/step_anchor.h"
#include "storage/step_jobs/step_worker.h"
#include "tests/unit/storage/model_fixture.h"
#include "tests/unit/storage/run_fixture.h"
#include "tests/unit/storage/step_fixture.h"

static const char KEY_2[] = "run/anchors/step_000002/model.safetensors";

static struct step_fixture fixture;
static struct error err;

static void set_up(void)
{
	err = (struct error){0};
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

static void publish_to(unsigned last)
{
	for (unsigned step = 0; step <= last; step++)
		step_fixture_publish(
			&fixture, step, step == 0 ? STEP_WITH_ANCHOR : STEP_WITH_DELTA);
	ck_assert_uint_eq(step_fixture_settle(&fixture), 0);
}

static int put(const char *key)
{
	err = (struct error){0};
	return fixture_put(fixture.store.store, "bucket", key, span_text("mine"), &err);
}

static void pin(uint64_t step)
{
	const struct pin_message message = {.name = span_text("p"), .step = step};
	ck_assert_int_eq(
		fixture_call(pin_put_call(fixture.store.store, &run_fixture_ref, &message), &err),
		0);
}

static void set(const char *settings)
{
	ck_assert_int_eq(fixture_call(run_settings_call(fixture.store.store, &run_fixture_ref,
					      span_text(settings)),
				 &err),
		0);
}

static int find_key(const char *key, struct object *out)
{
	const struct object_ref ref = {.bucket = fixture_bucket("bucket"), .key = span_text(key)};
	struct run_anchor anchor;
	return run_find_anchor_key(
		fixture.store.store, &ref, fixture.store.arena, out, &anchor, &err);
}

/* Objects that trainers put there for the run to adopt are theirs; the keys of made anchors are
 * not. */
START_TEST(keys_below_anchors_are_the_servers)
{
	ck_assert_int_eq(put("run/anchors/notes.txt"), -1);
	ck_assert_int_eq(err.kind, ERROR_DENIED);
	ck_assert_int_eq(put("run/anchors/step_000002.safetensors"), -1);
	ck_assert_int_eq(put("other/anchors/notes.txt"), 0);
	set("{\"adopt\":\"trl\"}");
	ck_assert_int_eq(put("run/anchors/notes.txt"), 0);
	ck_assert_int_eq(put(KEY_2), -1);
	ck_assert_int_eq(err.kind, ERROR_DENIED);
}
END_TEST

/* A requested anchor is in no listing until it is wanted for good. */
START_TEST(the_key_of_a_pinned_step_shows_its_anchor)
{
	struct object object;
	publish_to(5);
	ck_assert(step_fixture_is_whole(&fixture, 2));
	ck_assert_int_eq(fixture_find(&fixture.store, "bucket", KEY_2, &object, &err), -1);
	pin(2);
	ck_assert(fixture_holds(
		&fixture.store, "bucket", KEY_2, buffer_span(&fixture.steps[2].bytes)));
	ck_assert_int_eq(find_key(KEY_2, &object), 0);
	ck_assert(span_equal_text(object.key, KEY_2));
	ck_assert_uint_eq(object.size, fixture.steps[2].bytes.len);
	/* not made yet */
	ck_assert_int_eq(find_key("run/anchors/step_000003/model.safetensors", &object), 0);
	ck_assert(object.sequence == 0 &&
		span_equal_text(object.key, "run/anchors/step_000003/model.safetensors"));
}
END_TEST

START_TEST(a_key_that_is_taken_stays_its_owners)
{
	ck_assert_int_eq(
		fixture_run(fixture.store.store, "UPDATE runs SET name = 'later'", &err), 0);
	ck_assert_int_eq(put(KEY_2), 0);
	ck_assert_int_eq(fixture_run(fixture.store.store,
				 "UPDATE runs SET name = CAST('run' AS BLOB)", &err),
		0);
	publish_to(5);
	ck_assert(step_fixture_is_whole(&fixture, 2));
	pin(2);
	ck_assert(fixture_holds(&fixture.store, "bucket", KEY_2, span_text("mine")));
	ck_assert(step_fixture_is_whole(&fixture, 2));
}
END_TEST

/* It was put before the bucket had versions: a request for the null version must find it. */
START_TEST(a_deleted_object_keeps_its_null_version)
{
	struct version_ref ref;
	struct object object;
	const struct bucket_edit edit = {.sets_versioning = true, .versioning = BUCKET_VERSIONED};
	ck_assert_int_eq(
		fixture_run(fixture.store.store, "UPDATE runs SET name = 'later'", &err), 0);
	ck_assert_int_eq(put(KEY_2), 0);
	ck_assert_int_eq(fixture_edit_bucket(fixture.store.store, "bucket", &edit, &err), 0);
	ck_assert_int_eq(fixture_delete(fixture.store.store, "bucket", KEY_2, NULL, &err), 0);
	ck_assert_int_eq(fixture_run(fixture.store.store,
				 "UPDATE runs SET name = CAST('run' AS BLOB)", &err),
		0);
	publish_to(5);
	ck_assert(step_fixture_is_whole(&fixture, 2));
	pin(2);
	ck_assert(version_ref_parse(span_text("null"), &ref));
	ck_assert_int_eq(object_find(fixture.store.store,
				 &(struct object_ref){.bucket = fixture_bucket("bucket"),
					 .key = span_text(KEY_2),
					 .version = ref},
				 fixture.store.arena, &object, &err),
		0);
	ck_assert_uint_eq(object.size, strlen("mine"));
	ck_assert_int_eq(fixture_find(&fixture.store, "bucket", KEY_2, &object, &err), -1);
}
END_TEST

START_TEST(a_key_goes_with_its_step)
{
	struct object object;
	publish_to(5);
	ck_assert(step_fixture_is_whole(&fixture, 2));
	pin(2);
	ck_assert_int_eq(fixture_find(&fixture.store, "bucket", KEY_2, &object, &err), 0);
	ck_assert_int_eq(
		fixture_run(fixture.store.store, "UPDATE steps SET state = 1 WHERE step = 2", &err),
		0);
	fixture_sweep(fixture.store.store);
	ck_assert_int_eq(fixture_find(&fixture.store, "bucket", KEY_2, &object, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
	ck_assert_int_eq(
		count("SELECT COUNT(*) FROM step_objects o JOIN steps s ON s.id = o.step WHERE s.step = 2"),
		0);
}
END_TEST

START_TEST(an_anchor_whose_proof_failed_is_not_given)
{
	struct object object;
	struct run_anchor anchor;
	publish_to(2);
	ck_assert_int_eq(fixture_run(fixture.store.store,
				 "UPDATE steps SET verified = 2 WHERE step = 0", &err),
		0);
	ck_assert_int_eq(
		run_find_anchor_file(fixture.store.store,
			&(struct run_file_ref){run_fixture_ref, 0, span_text("model.safetensors")},
			fixture.store.arena, &object, &anchor, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_STEP_FAILED);
	ck_assert_int_eq(find_key("run/anchors/step_000000/model.safetensors", &object), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
}
END_TEST

START_TEST(none_is_made_of_a_pinned_step_whose_proof_failed)
{
	publish_to(4);
	ck_assert_int_eq(fixture_run(fixture.store.store,
				 "UPDATE steps SET verified = 2 WHERE step = 2", &err),
		0);
	pin(2);
	ck_assert_int_eq(
		count("SELECT COUNT(*) FROM steps WHERE step = 2 AND wants_made IS NOT NULL"), 0);
}
END_TEST

/* An anchor can be made of a proven step, now or when its base can be read again. */
START_TEST(a_proven_step_goes_on_wanting_its_anchor)
{
	publish_to(2);
	ck_assert_int_eq(
		fixture_run(fixture.store.store,
			"UPDATE steps SET made = NULL, wants_made = CASE step WHEN 1 THEN 1 END",
			&err),
		0);
	ck_assert_int_eq(
		fixture_run(fixture.store.store, "DELETE FROM step_objects WHERE form = 2", &err),
		0);
	ck_assert_int_eq(
		fixture_run(fixture.store.store,
			"UPDATE step_objects SET version = version + 9000 WHERE form = 0", &err),
		0);
	ck_assert_uint_eq(step_fixture_settle(&fixture), 1);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM steps WHERE wants_made = 1"), 1);
	ck_assert_int_eq(
		fixture_run(fixture.store.store,
			"UPDATE step_objects SET version = version - 9000 WHERE form = 0", &err),
		0);
	store_fixture_reopen(&fixture.store);
	ck_assert_uint_eq(step_fixture_settle(&fixture), 0);
	ck_assert_int_eq(
		count("SELECT COUNT(*) FROM steps WHERE step = 1 AND made IS NOT NULL"), 1);
}
END_TEST

static void change(const char *sql)
{
	ck_assert_msg(fixture_run(fixture.store.store, sql, &err) == 0, "%s", err.text);
}

/* No caller wakes the worker meanwhile. */
START_TEST(what_failed_is_tried_again_by_itself)
{
	static const char SQL_MADE[] =
		"SELECT COUNT(*) FROM steps WHERE step = 1 AND made IS NOT NULL";
	publish_to(2);
	change("UPDATE steps SET made = NULL, wants_made = CASE step WHEN 1 THEN 1 END");
	change("DELETE FROM step_objects WHERE form = 2");
	change("UPDATE step_objects SET version = version + 9000 WHERE form = 0");
	fixture.store.aside_ms = 30;
	store_fixture_reopen(&fixture.store);
	(void)step_fixture_settle(&fixture); /* it has failed by now */
	ck_assert_int_eq(count(SQL_MADE), 0);
	change("UPDATE step_objects SET version = version - 9000 WHERE form = 0");
	for (int i = 0; i < 2000 && count(SQL_MADE) == 0; i++)
		usleep(5000);
	ck_assert_int_eq(count(SQL_MADE), 1);
}
END_TEST

START_TEST(a_pinned_step_keeps_its_anchor_when_others_follow)
{
	publish_to(3);
	pin(2);
	ck_assert_uint_eq(step_fixture_settle(&fixture), 0);
	for (unsigned step = 4; step <= 6; step++) {
		step_fixture_publish(&fixture, step, STEP_WITH_DELTA);
		ck_assert_uint_eq(step_fixture_settle(&fixture), 0);
	}
	ck_assert_int_eq(
		count("SELECT COUNT(*) FROM steps WHERE wants_made = 1 AND step IN (2, 6)"), 2);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM steps WHERE wants_made = 1"), 2);
	ck_assert(fixture_holds(
		&fixture.store, "bucket", KEY_2, buffer_span(&fixture.steps[2].bytes)));
}
END_TEST

static void publish_folder(struct model_fixture *models, unsigned step)
{
	char *const path = model_fixture_make(
		models, step, arena_format(models->store.arena, "{\"v\":%u}", step));
	const char *const prefix = arena_format(models->store.arena, "run/own/%u/", step);
	const struct step_form form = step == 0
		? model_fixture_put(models, path, prefix, STEP_ANCHOR, "full")
		: model_fixture_put(models,
			  model_fixture_diff(models, step - 1, step, DELTA_ULP_CLASS), prefix,
			  STEP_DELTA, "ulp-class");
	model_fixture_publish(models, step, NULL, &form, 1);
}

/* A config that each step changes, an empty file and a shard. */
START_TEST(an_anchor_of_several_files_is_stored)
{
	struct model_fixture models = {.folder = NULL};
	model_fixture_open(&models);
	for (unsigned step = 0; step <= 2; step++)
		publish_folder(&models, step);
	ck_assert_int_eq(
		fixture_run(models.store.store,
			"UPDATE steps SET verified = 1, wants_made = CASE step WHEN 2 THEN 2 END",
			&err),
		0);
	ck_assert_uint_eq(model_fixture_settle(&models), 0);
	ck_assert_int_eq(
		fixture_count(models.store.store, "SELECT made FROM steps WHERE step = 2"), 0);
	static const char *const names[] = {"config.json", "empty.txt", "model.safetensors"};
	char *const stored = arena_format(models.store.arena, "%s/stored", models.folder);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct object object;
		struct run_anchor anchor;
		ck_assert_msg(
			run_find_anchor_file(models.store.store,
				&(struct run_file_ref){run_fixture_ref, 2, span_text(names[i])},
				models.store.arena, &object, &anchor, &err) == 0,
			"%s: %s", names[i], err.text);
		model_fixture_fetch(&models, &object, stored, names[i]);
	}
	ck_assert(model_fixture_same(&models, stored, model_fixture_make(&models, 2, NULL)));
	model_fixture_close(&models);
}
END_TEST

/* Step 1 with one file, or with none according to its manifest. */
static void publish_by_hand(struct model_fixture *models, struct step_file *file)
{
	char *base = model_fixture_make(models, 0, NULL);
	const struct step_form anchor =
		model_fixture_put(models, base, "run/own/0/", STEP_ANCHOR, "full");
	model_fixture_publish(models, 0, NULL, &anchor, 1);
	model_fixture_make(models, 1, NULL);
	const struct step_message step = {.step = 1,
		.epoch = 1,
		.digest = model_fixture_digest(models, 1),
		.has_base = true,
		.base_digest = model_fixture_digest(models, 0),
		.files = file,
		.file_count = file != NULL,
		.form_count = 1,
		.forms = {
			model_fixture_put(models, model_fixture_diff(models, 0, 1, DELTA_ULP_CLASS),
				"run/own/1/", STEP_DELTA, "ulp-class")}};
	ck_assert_msg(fixture_call(run_publish_call(models->store.store, &run_fixture_ref, &step),
			      &err) == 0,
		"%s", err.text);
}

/* The step was not proven: its made anchor is compared with the manifest. */
START_TEST(an_anchor_is_what_the_manifest_says)
{
	struct model_fixture models = {.folder = NULL};
	struct step_file file = {.path = span_text("model.safetensors"),
		.size = 945,
		.digest = xxh3_128(span_text("other"))};
	model_fixture_open(&models);
	publish_by_hand(&models, &file);
	ck_assert_int_eq(
		fixture_run(models.store.store,
			"UPDATE steps SET verified = 3, wants_made = CASE step WHEN 1 THEN 1 END",
			&err),
		0);
	ck_assert_uint_eq(model_fixture_settle(&models), 1);
	ck_assert_int_eq(fixture_count(models.store.store,
				 "SELECT COUNT(*) FROM steps WHERE made IS NOT NULL"),
		0);
	ck_assert_int_eq(
		fixture_count(models.store.store, "SELECT COUNT(*) FROM scratch_versions"), 0);
	model_fixture_close(&models);
}
END_TEST

START_TEST(what_is_promised_is_in_the_manifest)
{
	struct model_fixture models = {.folder = NULL};
	struct object object;
	struct run_anchor anchor;
	model_fixture_open(&models);
	publish_by_hand(&models, NULL);
	ck_assert_int_eq(
		run_find_anchor_file(models.store.store,
			&(struct run_file_ref){run_fixture_ref, 1, span_text("model.safetensors")},
			models.store.arena, &object, &anchor, &err),
		-1);
	/* whether it has such a file is known when it is made */
	ck_assert_int_eq(err.kind, ERROR_NOT_READY);
	ck_assert_int_eq(
		fixture_run(models.store.store, "UPDATE steps SET state = 1 WHERE step = 1", &err),
		0);
	ck_assert_int_eq(
		run_find_anchor_file(models.store.store,
			&(struct run_file_ref){run_fixture_ref, 1, span_text("model.safetensors")},
			models.store.arena, &object, &anchor, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_COLLECTED);
	ck_assert_int_eq(
		run_find_anchor_file(models.store.store,
			&(struct run_file_ref){run_fixture_ref, 2, span_text("model.safetensors")},
			models.store.arena, &object, &anchor, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_NO_STEP);
	model_fixture_close(&models);
}
END_TEST

/* A folder in which nothing changed: the delta has no objects. */
START_TEST(a_step_that_changed_nothing_is_the_one_before)
{
	struct model_fixture models = {.folder = NULL};
	struct object object;
	struct run_anchor anchor;
	const struct step_form empty = {.kind = STEP_DELTA, .format = span_text("ulp-class")};
	model_fixture_open(&models);
	publish_folder(&models, 0);
	const char *copy = arena_format(
		models.store.arena, "cp -r '%s/step0' '%s/step1'", models.folder, models.folder);
	ck_assert_int_eq(system(copy), 0);
	model_fixture_publish(&models, 1, NULL, &empty, 1);
	ck_assert_uint_eq(model_fixture_settle(&models), 0);
	ck_assert_int_eq(
		fixture_count(models.store.store, "SELECT COUNT(*) FROM steps WHERE verified = 1"),
		2);
	ck_assert_int_eq(fixture_count(models.store.store,
				 "SELECT COUNT(*) FROM steps WHERE step = 1 AND made IS NOT NULL"),
		1);
	char *stored = arena_format(models.store.arena, "%s/stored", models.folder);
	static const char *const names[] = {"config.json", "empty.txt", "model.safetensors"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		ck_assert_int_eq(
			run_find_anchor_file(models.store.store,
				&(struct run_file_ref){run_fixture_ref, 1, span_text(names[i])},
				models.store.arena, &object, &anchor, &err),
			0);
		model_fixture_fetch(&models, &object, stored, names[i]);
	}
	ck_assert(model_fixture_same(&models, stored, model_fixture_make(&models, 0, NULL)));
	model_fixture_close(&models);
}
END_TEST

Suite *test_step_anchor_shown_suite(void);
Suite *test_step_anchor_shown_suite(void)
{
	Suite *const suite = suite_create("step_anchor_shown");
	TCase *const tests = tcase_create("step_anchor_shown");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, keys_below_anchors_are_the_servers);
	tcase_add_test(tests, the_key_of_a_pinned_step_shows_its_anchor);
	tcase_add_test(tests, a_key_that_is_taken_stays_its_owners);
	tcase_add_test(tests, an_anchor_whose_proof_failed_is_not_given);
	tcase_add_test(tests, none_is_made_of_a_pinned_step_whose_proof_failed);
	tcase_add_test(tests, a_proven_step_goes_on_wanting_its_anchor);
	tcase_add_test(tests, what_failed_is_tried_again_by_itself);
	tcase_add_test(tests, a_pinned_step_keeps_its_anchor_when_others_follow);
	tcase_add_test(tests, an_anchor_of_several_files_is_stored);
	tcase_add_test(tests, a_deleted_object_keeps_its_null_version);
	tcase_add_test(tests, a_key_goes_with_its_step);
	tcase_add_test(tests, a_step_that_changed_nothing_is_the_one_before);
	tcase_add_test(tests, an_anchor_is_what_the_manifest_says);
	tcase_add_test(tests, what_is_promised_is_in_the_manifest);
	suite_add_tcase(suite, tests);
	return suite;
}
