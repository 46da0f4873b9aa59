/* The proof of a step compares the tensors, and each file that the manifest names. */
#include "tests/unit/unit.h"

#include <string.h>

#include "storage/core/run_feed.h"
#include "tests/unit/storage/model_fixture.h"
#include "tests/unit/storage/run_fixture.h"

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

static struct step_form anchor_of(unsigned step)
{
	return model_fixture_put(&fixture, model_fixture_make(&fixture, step, "{ }"),
		arena_format(fixture.store.arena, "run/%u/", step), STEP_ANCHOR, "full");
}

/* Publishes a step whose manifest and whose form may be of two different models. Its files are the
 * first `files` files of the folder. */
static struct step_message message_of(unsigned step, struct step_form form, size_t files)
{
	static const char *const names[] = {"config.json", "empty.txt", "model.safetensors"};
	struct step_message message = {.step = step,
		.epoch = 1,
		.digest = model_fixture_digest(&fixture, step),
		.form_count = 1};
	message.forms[0] = form;
	message.files = arena_take_array(fixture.store.arena, files + 1, sizeof(*message.files));
	message.file_count = files;
	const struct step_form whole = anchor_of(step);
	for (size_t i = 0; i < files; i++)
		for (size_t k = 0; k < whole.object_count; k++)
			if (span_equal_text(whole.objects[k].name, names[i]))
				message.files[i] = (struct step_file){span_text(names[i]),
					whole.objects[k].size, whole.objects[k].digest};
	message.has_base = step > 0;
	if (step > 0) {
		message.base_step = step - 1;
		message.base_digest = model_fixture_digest(&fixture, step - 1);
	}
	return message;
}

static void publish(const struct step_message *message)
{
	ck_assert_msg(fixture_call(run_publish_call(fixture.store.store, &run_fixture_ref, message),
			      &err) == 0,
		"step %u: %s", (unsigned)message->step, err.text);
}

static struct step_message settled_step(uint64_t step)
{
	struct step_message message;
	uint64_t anchor;
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	ck_assert_int_eq(run_fixture_find(&fixture.store, step, &message, &anchor, &err), 0);
	return message;
}

/* The reason contains these words, and no path of the server. */
static void expect_failure(uint64_t step, const char *words)
{
	const struct step_message message = settled_step(step);
	ck_assert_int_eq(message.verified, STEP_PROOF_FAILED);
	const char *const text = arena_text(fixture.store.arena, message.verify_error);
	ck_assert_msg(strstr(text, words) != NULL, "%s", text);
	ck_assert_msg(strstr(text, fixture.store.folder) == NULL, "%s", text);
}

static struct step_form delta_of(unsigned from, unsigned to)
{
	(void)model_fixture_make(&fixture, from, "{ }");
	(void)model_fixture_make(&fixture, to, "{ }");
	return model_fixture_put(&fixture, model_fixture_diff(&fixture, from, to, DELTA_ULP_CLASS),
		"run/deltas/", STEP_DELTA, "ulp-class");
}

START_TEST(a_manifest_without_files_is_proven_by_the_tensors)
{
	const struct step_message first = message_of(0, anchor_of(0), 0);
	publish(&first);
	const struct step_form right = delta_of(0, 1);
	const struct step_message next = message_of(1, right, 0);
	publish(&next);
	ck_assert_int_eq(settled_step(1).verified, STEP_PROOF_OK);
	(void)model_fixture_make(&fixture, 2, "{ }");
	const struct step_form wrong = delta_of(1, 3);
	const struct step_message last = message_of(2, wrong, 0);
	publish(&last);
	expect_failure(2, "The checkpoint's digest is ");
}
END_TEST

START_TEST(each_file_must_be_named)
{
	const struct step_message message = message_of(0, anchor_of(0), 2);
	publish(&message);
	expect_failure(0, "has 3 files, not 2");
}
END_TEST

START_TEST(each_file_has_the_size_that_is_named)
{
	const struct step_message message = message_of(0, anchor_of(0), 3);
	message.files[0].size++;
	publish(&message);
	expect_failure(0, "The file 'config.json' has 3 bytes, not 4.");
}
END_TEST

START_TEST(each_file_is_what_is_named)
{
	const struct step_message message = message_of(0, anchor_of(0), 3);
	message.files[1].digest.bytes[3] ^= 1;
	publish(&message);
	expect_failure(0, "The file 'empty.txt' is not what the manifest says.");
}
END_TEST

START_TEST(what_fits_is_proven)
{
	const struct step_message message = message_of(0, anchor_of(0), 3);
	publish(&message);
	ck_assert_int_eq(settled_step(0).verified, STEP_PROOF_OK);
}
END_TEST

START_TEST(a_delta_that_is_none_fails_and_tells_no_paths)
{
	const struct span bytes = span_text("this is no delta at all");
	struct step_object object = {.name = span_text("delta.safetensors"),
		.key = span_text("bad"),
		.size = bytes.len,
		.digest = xxh3_128(bytes)};
	const struct step_message first = message_of(0, anchor_of(0), 3);
	publish(&first);
	ck_assert_int_eq(fixture_put(fixture.store.store, "bucket", "bad", bytes, &err), 0);
	(void)model_fixture_make(&fixture, 1, "{ }");
	const struct step_message next = message_of(
		1, (struct step_form){STEP_DELTA, span_text("ulp-class"), &object, 1}, 3);
	publish(&next);
	expect_failure(1, "its delta");
}
END_TEST

START_TEST(nothing_is_proven_of_a_run_that_does_not_ask_for_it)
{
	ck_assert_int_eq(fixture_call(run_settings_call(fixture.store.store, &run_fixture_ref,
					      span_text("{\"verify\":false}")),
				 &err),
		0);
	const struct step_message message = message_of(0, anchor_of(0), 2);
	publish(&message);
	ck_assert_int_eq(settled_step(0).verified, STEP_PROOF_NONE);
}
END_TEST

/* With the verdict alone: the publish was shown before. */
START_TEST(readers_that_follow_runs_learn_of_the_verdict)
{
	struct run_feed *const feed = store_run_feed(fixture.store.store);
	const struct step_message message = message_of(0, anchor_of(0), 3);
	publish(&message);
	const uint64_t seen = run_feed_last(feed);
	ck_assert_int_eq(settled_step(0).verified, STEP_PROOF_OK);
	ck_assert_uint_gt(run_feed_last(feed), seen);
}
END_TEST

Suite *test_step_proof_suite(void);
Suite *test_step_proof_suite(void)
{
	Suite *const suite = suite_create("step_proof");
	TCase *const tests = tcase_create("step_proof");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 30);
	tcase_add_test(tests, a_manifest_without_files_is_proven_by_the_tensors);
	tcase_add_test(tests, each_file_must_be_named);
	tcase_add_test(tests, each_file_has_the_size_that_is_named);
	tcase_add_test(tests, each_file_is_what_is_named);
	tcase_add_test(tests, what_fits_is_proven);
	tcase_add_test(tests, readers_that_follow_runs_learn_of_the_verdict);
	tcase_add_test(tests, a_delta_that_is_none_fails_and_tells_no_paths);
	tcase_add_test(tests, nothing_is_proven_of_a_run_that_does_not_ask_for_it);
	suite_add_tcase(suite, tests);
	return suite;
}
