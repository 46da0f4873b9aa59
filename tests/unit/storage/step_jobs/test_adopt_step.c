/* Foreign publishes of real checkpoints become steps, or fail for a reason that clients see. */
#include "tests/unit/unit.h"

#include <string.h>

#include "base/file.h"
#include "storage/runs/hot_load.h"
#include "storage/step_jobs/step_worker.h"
#include "tests/unit/storage/model_fixture.h"
#include "tests/unit/storage/run_fixture.h"
#include "tests/unit/storage/upload_fixture.h"

static struct model_fixture fixture;
static struct error err;

static void set_up(void)
{
	err = (struct error){0};
	memset(&fixture, 0, sizeof(fixture));
	model_fixture_open(&fixture);
}

static void tear_down(void)
{
	model_fixture_close(&fixture);
}

static int64_t count(const char *sql)
{
	return fixture_count(fixture.store.store, sql);
}

static void set(const char *settings)
{
	ck_assert_msg(fixture_call(run_settings_call(fixture.store.store, &run_fixture_ref,
					   span_text(settings)),
			      &err) == 0,
		"%s", err.text);
}

static void put_bytes(const char *key, struct span bytes)
{
	ck_assert_msg(fixture_put(fixture.store.store, "bucket", key, bytes, &err) == 0, "%s: %s",
		key, err.text);
}

static void put_file(const char *path, const char *key)
{
	struct buffer bytes;
	buffer_init(&bytes, 1000000);
	ck_assert_msg(file_read_all(path, &bytes, &err) == 0, "%s", err.text);
	put_bytes(key, buffer_span(&bytes));
	buffer_release(&bytes);
}

static void put_anchor(unsigned step)
{
	const char *const folder = model_fixture_make(&fixture, step, NULL);
	put_file(arena_format(fixture.store.arena, "%s/model.safetensors", folder),
		arena_format(fixture.store.arena, "run/anchors/step_%06u.safetensors", step));
}

static void put_delta(unsigned from, unsigned to)
{
	model_fixture_make(&fixture, from, NULL);
	model_fixture_make(&fixture, to, NULL);
	put_file(model_fixture_diff(&fixture, from, to, DELTA_TRL_GAP),
		arena_format(fixture.store.arena, "run/deltas/step_%06u.safetensors", to));
}

/* A whole model; with `from` below `to` a folder in slime's layout. */
static void put_folder(unsigned from, unsigned to, const char *prefix)
{
	const char *path = model_fixture_make(&fixture, to, NULL);
	if (from < to) {
		model_fixture_make(&fixture, from, NULL);
		path = model_fixture_diff(&fixture, from, to, DELTA_SLIME_XOR);
	}
	(void)model_fixture_put(&fixture, path, prefix, STEP_ANCHOR, "any");
}

/* The step is there, has this name, and is the model `model`. */
static void expect_step(uint64_t number, const char *label, unsigned model)
{
	struct step_message step;
	uint64_t anchor;
	ck_assert_msg(run_fixture_find(&fixture.store, number, &step, &anchor, &err) == 0, "%s",
		err.text);
	const struct digest128 digest = model_fixture_digest(&fixture, model);
	ck_assert_msg(span_equal_text(step.label, label), "step %u is called %.*s",
		(unsigned)number, (int)step.label.len, (const char *)step.label.data);
	ck_assert(digest128_equal(&step.digest, &digest));
	ck_assert_int_eq(step.verified, STEP_PROOF_OK);
}

static void expect_steps(int64_t steps)
{
	ck_assert_int_eq(count("SELECT COUNT(*) FROM steps"), steps);
}

/* The newest publish failed. The reason contains these words, and no path of the server. */
static void expect_failure(const char *words)
{
	struct hot_load_newest newest;
	ck_assert_int_eq(hot_load_find_newest(fixture.store.store, &run_fixture_ref,
				 fixture.store.arena, &newest, &err),
		0);
	ck_assert(newest.is_known && newest.failed && !newest.is_step);
	const char *const text = arena_text(fixture.store.arena, newest.error);
	ck_assert_msg(strstr(text, words) != NULL, "%s", text);
	ck_assert_msg(strstr(text, fixture.store.folder) == NULL, "%s", text);
}

static int hot_load(const char *identity, const char *base)
{
	const struct hot_load_params params = {.run = run_fixture_ref,
		.deployment = span_text("d"),
		.identity = span_text(identity),
		.has_base = base != NULL,
		.base = base != NULL ? span_text(base) : (struct span){0}};
	err = (struct error){0};
	return fixture_call(hot_load_call(fixture.store.store, &params), &err);
}

START_TEST(anchors_and_deltas_of_trl_become_steps)
{
	set("{\"adopt\":\"trl\"}");
	put_anchor(4);
	put_delta(4, 5);
	put_delta(5, 6);
	put_anchor(9);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_steps(4);
	expect_step(0, "step_000004", 4);
	expect_step(1, "step_000005", 5);
	expect_step(2, "step_000006", 6);
	expect_step(3, "step_000009", 9);
	ck_assert_int_eq(
		count("SELECT COUNT(*) FROM adoptions WHERE state = 1 AND id = step + 1"), 4);
}
END_TEST

START_TEST(a_delta_over_a_gap_is_no_step)
{
	set("{\"adopt\":\"trl\"}");
	put_anchor(1);
	put_delta(1, 3);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_steps(1);
	expect_failure("The publish is version 3, and the run's newest step is version 1.");
	put_delta(1, 2);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_step(1, "step_000002", 2);
	put_anchor(7);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_step(2, "step_000007", 7);
}
END_TEST

START_TEST(a_delta_needs_a_step_to_build_on)
{
	set("{\"adopt\":\"trl\"}");
	put_delta(0, 1);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_failure("The publish is a delta, and the run has no step yet.");
	expect_steps(0);
}
END_TEST

/* A failed publish is tried again when its key is put again. */
START_TEST(a_file_that_is_none_is_no_step_until_it_is_put_anew)
{
	set("{\"adopt\":\"trl\"}");
	put_bytes("run/anchors/step_000000.safetensors",
		span_text("this is no safetensors file at all"));
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_failure("");
	put_anchor(0);
	put_bytes("run/deltas/step_000001.safetensors", span_text("this is no delta at all"));
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_step(0, "step_000000", 0);
	expect_failure("");
	expect_steps(1);
	put_delta(0, 1);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_step(1, "step_000001", 1);
}
END_TEST

START_TEST(versions_of_slime_become_steps)
{
	set("{\"adopt\":\"slime\",\"adopt_prefix\":\"out/{run}/\"}");
	put_folder(0, 0, "out/run/weight_v000000/");
	put_bytes("out/run/weight_v000001/", span_text(""));
	put_folder(0, 1, "out/run/weight_v000001/");
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_steps(2);
	expect_step(0, "weight_v000000", 0);
	expect_step(1, "weight_v000001", 1);
}
END_TEST

START_TEST(a_pointer_stands_for_the_versions_before_it)
{
	set("{\"adopt\":\"stitch\",\"adopt_prefix\":\"\"}");
	put_folder(0, 0, "updates/weight_v000000/");
	put_folder(0, 1, "updates/weight_v000001/");
	put_folder(1, 2, "updates/weight_v000002/");
	put_bytes("latest", span_text("r/weight_v000002\n"));
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_steps(3);
	expect_step(0, "r/weight_v000000", 0);
	expect_step(1, "r/weight_v000001", 1);
	expect_step(2, "r/weight_v000002", 2);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM adoptions"), 3);
	put_bytes("updates/weight_v000003/model.safetensors.index.json", span_text("{ }"));
	put_bytes("latest", span_text("r/weight_v000003"));
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_failure("");
	expect_steps(3);
	put_folder(2, 3, "updates/weight_v000003/");
	put_bytes("latest", span_text("r/weight_v000003"));
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_steps(4);
	expect_step(3, "r/weight_v000003", 3);
}
END_TEST

START_TEST(a_pointer_that_says_nothing_fails)
{
	set("{\"adopt\":\"stitch\",\"adopt_prefix\":\"\"}");
	put_bytes("latest", span_text("nothing"));
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_failure("The pointer 'latest' does not hold");
}
END_TEST

/* With the line end and the blanks that an editor adds: the longest pointer that is accepted, and
 * one byte more. */
START_TEST(a_pointer_has_at_most_4096_bytes)
{
	enum { MOST = 4096 };
	char *pointer = arena_take(fixture.store.arena, MOST + 1);
	set("{\"adopt\":\"stitch\",\"adopt_prefix\":\"\"}");
	put_folder(0, 0, "updates/weight_v000000/");
	memset(pointer, ' ', MOST + 1);
	memcpy(pointer, "r/weight_v000000", strlen("r/weight_v000000"));
	put_bytes("latest", span_of(pointer, MOST + 1));
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_failure("over the limit of 4096");
	put_bytes("latest", span_of(pointer, MOST));
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_steps(1);
	expect_step(0, "r/weight_v000000", 0);
}
END_TEST

/* In a bucket with versions something still lies under the keys. */
START_TEST(a_pointer_does_not_stand_for_what_was_deleted)
{
	ck_assert_int_eq(
		fixture_run(fixture.store.store, "UPDATE buckets SET versioning = 1", &err), 0);
	set("{\"adopt\":\"stitch\",\"adopt_prefix\":\"\"}");
	put_folder(0, 0, "updates/weight_v000000/");
	put_folder(1, 1, "updates/weight_v000001/");
	ck_assert_int_eq(fixture_delete(fixture.store.store, "bucket",
				 "updates/weight_v000000/model.safetensors", NULL, &err),
		0);
	put_bytes("latest", span_text("r/weight_v000001"));
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM adoptions"), 1);
	expect_steps(1);
	expect_step(0, "r/weight_v000001", 1);
}
END_TEST

START_TEST(what_was_deleted_meanwhile_is_no_step)
{
	ck_assert_int_eq(
		fixture_run(fixture.store.store, "UPDATE buckets SET versioning = 1", &err), 0);
	set("{\"adopt\":\"trl\"}");
	put_anchor(1);
	ck_assert_int_eq(fixture_delete(fixture.store.store, "bucket",
				 "run/anchors/step_000001.safetensors", NULL, &err),
		0);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_steps(0);
	expect_failure("'run/anchors/step_000001.safetensors' does not exist");
	put_anchor(1);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_steps(1);
	expect_step(0, "step_000001", 1);
}
END_TEST

/* An object that was uploaded in parts has no digest. */
START_TEST(an_anchor_that_was_uploaded_in_parts_becomes_a_step)
{
	struct upload_ref ref;
	struct upload_fault fault;
	struct upload_result result;
	struct uploaded_part part;
	struct buffer bytes;
	struct upload_listed_part listed = {.number = 1};
	struct upload_create_params create = {.bucket = fixture_bucket("bucket"),
		.key = span_text("run/anchors/step_000001.safetensors")};
	set("{\"adopt\":\"trl\"}");
	buffer_init(&bytes, 1000000);
	const char *path = arena_format(
		fixture.store.arena, "%s/model.safetensors", model_fixture_make(&fixture, 1, NULL));
	ck_assert_int_eq(file_read_all(path, &bytes, &err), 0);
	ck_assert_int_eq(fixture_upload_create(fixture.store.store, &create, &ref, &err), 0);
	ck_assert_int_eq(fixture_upload_put(fixture.store.store, &ref, 1, buffer_span(&bytes), NULL,
				 &part, &err),
		0);
	memcpy(listed.etag, part.etag, sizeof(part.etag));
	struct upload_complete_params complete = {.ref = ref, .parts = &listed, .part_count = 1};
	ck_assert_msg(
		fixture_upload_complete(fixture.store.store, &complete, &result, &fault, &err) == 0,
		"%s", err.text);
	buffer_release(&bytes);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_steps(1);
	expect_step(0, "step_000001", 1);
}
END_TEST

START_TEST(snapshots_become_steps_one_upon_the_other)
{
	set("{\"hot_load\":\"d\",\"hot_load_prefix\":\"s/\"}");
	put_folder(0, 0, "s/a/");
	put_folder(0, 1, "s/b/");
	ck_assert_int_eq(hot_load("a", NULL), 0);
	ck_assert_int_eq(hot_load("b", "a"), 0);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_steps(2);
	expect_step(0, "a", 0);
	expect_step(1, "b", 1);
	struct span identity;
	ck_assert_int_eq(hot_load_identity(fixture.store.store, &run_fixture_ref, 1,
				 fixture.store.arena, &identity, &err),
		0);
	ck_assert(span_equal_text(identity, "b"));
	ck_assert_int_eq(hot_load_identity(fixture.store.store, &run_fixture_ref, 2,
				 fixture.store.arena, &identity, &err),
		0);
	ck_assert(span_equal_text(identity, "step_000002"));
}
END_TEST

/* Another writer published the head meanwhile: the delta would be applied to weights that it was
 * not made for. */
START_TEST(a_snapshot_upon_another_head_is_no_step)
{
	set("{\"hot_load\":\"d\",\"hot_load_prefix\":\"s/\"}");
	put_folder(0, 0, "s/a/");
	ck_assert_int_eq(hot_load("a", NULL), 0);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	const struct step_form form = model_fixture_put(
		&fixture, model_fixture_make(&fixture, 1, NULL), "run/own/", STEP_ANCHOR, "full");
	model_fixture_publish(&fixture, 1, NULL, &form, 1);
	put_folder(0, 2, "s/b/");
	ck_assert_int_eq(hot_load("b", "a"), 0);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_failure("The publish builds on 'a', which is not the run's newest step.");
	expect_steps(2);
}
END_TEST

START_TEST(a_snapshot_is_what_it_was_announced_as)
{
	set("{\"hot_load\":\"d\",\"hot_load_prefix\":\"s/\"}");
	put_folder(0, 0, "s/a/");
	put_folder(0, 1, "s/b/");
	put_folder(2, 2, "s/c/");
	ck_assert_int_eq(hot_load("a", NULL), 0);
	ck_assert_int_eq(hot_load("b", NULL), 0);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_failure("announced as a full snapshot");
	ck_assert_int_eq(hot_load("c", "a"), 0);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_failure("announced as an incremental snapshot");
	expect_steps(1);
}
END_TEST

START_TEST(a_snapshot_without_objects_fails)
{
	set("{\"hot_load\":\"d\",\"hot_load_prefix\":\"s/\"}");
	ck_assert_int_eq(hot_load("a", NULL), 0);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_failure("There are no objects below 's/a/'.");
}
END_TEST

/* A fault of the store is not a verdict: the publish keeps waiting. */
START_TEST(what_cannot_be_read_now_becomes_a_step_later)
{
	const char *const scratch =
		arena_format(fixture.store.arena, "%s/scratch", fixture.store.folder);
	set("{\"adopt\":\"trl\",\"verify\":false}");
	put_anchor(0);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	put_delta(0, 1);
	ck_assert_int_eq(file_remove_tree(file_system(), scratch, &err), 0);
	ck_assert_int_eq(
		file_place(file_system(), scratch, span_text("in the way"), 0600, &err), 0);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 1);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM adoptions WHERE state = 0"), 1);
	ck_assert_int_eq(file_remove_tree(file_system(), scratch, &err), 0);
	ck_assert_int_eq(file_make_folder(file_system(), scratch, 0700, &err), 0);
	store_fixture_reopen(&fixture.store);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	expect_steps(2);
}
END_TEST

Suite *test_adopt_step_suite(void);
Suite *test_adopt_step_suite(void)
{
	Suite *const suite = suite_create("adopt_step");
	TCase *const tests = tcase_create("adopt_step");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 30);
	tcase_add_test(tests, anchors_and_deltas_of_trl_become_steps);
	tcase_add_test(tests, a_delta_over_a_gap_is_no_step);
	tcase_add_test(tests, a_delta_needs_a_step_to_build_on);
	tcase_add_test(tests, a_file_that_is_none_is_no_step_until_it_is_put_anew);
	tcase_add_test(tests, versions_of_slime_become_steps);
	tcase_add_test(tests, a_pointer_stands_for_the_versions_before_it);
	tcase_add_test(tests, a_pointer_that_says_nothing_fails);
	tcase_add_test(tests, a_pointer_has_at_most_4096_bytes);
	tcase_add_test(tests, a_pointer_does_not_stand_for_what_was_deleted);
	tcase_add_test(tests, what_was_deleted_meanwhile_is_no_step);
	tcase_add_test(tests, an_anchor_that_was_uploaded_in_parts_becomes_a_step);
	tcase_add_test(tests, snapshots_become_steps_one_upon_the_other);
	tcase_add_test(tests, a_snapshot_upon_another_head_is_no_step);
	tcase_add_test(tests, a_snapshot_is_what_it_was_announced_as);
	tcase_add_test(tests, a_snapshot_without_objects_fails);
	tcase_add_test(tests, what_cannot_be_read_now_becomes_a_step_later);
	suite_add_tcase(suite, tests);
	return suite;
}
