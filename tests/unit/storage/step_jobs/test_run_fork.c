/* A run that begins where another one stands has its bytes and the result of their proof, and never
 * bytes that were found wrong. */
#include "storage/step_jobs/run_fork.h"

#include "base/thread/step_watch.h"
#include "storage/core/store.h"
#include "tests/unit/storage/run_fixture.h"
#include "tests/unit/storage/step_fixture.h"
#include "tests/unit/unit.h"
#include "weights/model/schema.h"

static struct step_fixture fixture;

static void set_up(void)
{
	step_fixture_open(&fixture);
}

static void tear_down(void)
{
	step_fixture_close(&fixture);
}

static int fork_as(const char *name, uint64_t step, struct error *err)
{
	const struct run_fork_params params = {
		.open.run = run_named(span_text("bucket"), span_text(name)),
		.from = span_text("run"),
		.step = step,
	};
	return fixture_call(run_fork_call(fixture.store.store, &params), err);
}

static int find_run(const char *name, struct run_message *out)
{
	struct error err = {0};
	const struct run_ref run = run_named(span_text("bucket"), span_text(name));
	return run_find(fixture.store.store, &run, fixture.store.arena, out, &err);
}

static struct step_message first_step(const char *name)
{
	struct error err = {0};
	struct step_message step;
	uint64_t anchor;
	const struct run_step_params params = {
		.run = run_named(span_text("bucket"), span_text(name)), .with_tensors = true};
	ck_assert_msg(run_find_step(fixture.store.store, &params, fixture.store.arena, &step,
			      &anchor, &err) == 0,
		"%s", err.text);
	return step;
}

static void expect_refused(const char *name, uint64_t step, enum error_kind kind)
{
	struct error err = {0};
	ck_assert_int_eq(fork_as(name, step, &err), -1);
	ck_assert_msg(err.kind == kind, "%s: %s", error_kind_name(err.kind), err.text);
}

/* Step 0 of the new run reads as the old run's step. */
static void expect_forked(const char *name, unsigned step)
{
	struct error err = {0};
	struct run_message run;
	struct object object;
	struct run_anchor anchor;
	struct buffer read;
	const struct span want = buffer_span(&fixture.steps[step].bytes);
	ck_assert_int_eq(find_run(name, &run), 0);
	ck_assert_uint_eq(run.head, 0);
	const struct step_message first = first_step(name);
	ck_assert(digest128_equal(&first.digest, &fixture.digests[step]));
	ck_assert_int_eq(
		run_find_anchor_file(fixture.store.store,
			&(struct run_file_ref){run_named(span_text("bucket"), span_text(name)), 0,
				span_text("model.safetensors")},
			fixture.store.arena, &object, &anchor, &err),
		0);
	buffer_init(&read, want.len + 1024 * 1024);
	ck_assert_int_eq(
		fixture_read(fixture.store.store, &object, 0, object.size, &read, &err), 0);
	ck_assert(span_equal(buffer_span(&read), want));
	buffer_release(&read);
}

START_TEST(a_fork_has_the_bytes_and_the_proof_of_the_step)
{
	struct error err = {0};
	step_fixture_publish(&fixture, 0, STEP_WITH_ANCHOR);
	ck_assert_int_eq(fork_as("early", 0, &err), 0);
	ck_assert_int_eq(first_step("early").verified, STEP_PROOF_PENDING);
	ck_assert_uint_eq(step_fixture_settle(&fixture), 0);
	ck_assert_int_eq(fork_as("late", 0, &err), 0);
	ck_assert_int_eq(first_step("late").verified, STEP_PROOF_OK);
	expect_forked("early", 0);
	expect_forked("late", 0);
}
END_TEST

/* The manifest of the step has the digest of each tensor. */
static void add_tensor_digests(struct step_message *step)
{
	static const struct digest128 digests[2] = {{{1, 2, 3}}, {{4}}};
	struct error err = {0};
	const struct span shard = run_fixture_shard(&fixture.store, "ab", 0);
	struct safetensors *header =
		safetensors_parse(span_slice(shard, 8, shard.len - 16), 8, "shard", &err);
	struct schema *schema = schema_new();
	ck_assert_int_eq(schema_add(schema, header, &err), 0);
	schema_finish(schema);
	step->tensor_digests = span_of(digests, sizeof(digests));
	step->digest = schema_checkpoint_digest(schema, digests);
	schema_free(schema);
	safetensors_free(header);
}

START_TEST(a_fork_says_what_the_step_said)
{
	struct error err = {0};
	struct step_message step = run_fixture_prepare(&fixture.store, 0, true, 0);
	step.metadata = span_text("{\"loss\":\"2\"}");
	step.forms[0].format = span_text("sharded");
	add_tensor_digests(&step);
	run_fixture_publish_ok(&fixture.store, &step);
	const uint64_t seen = step_watch_generation(
		store_step_watch(fixture.store.store), span_text("bucket"), span_text("forked"));
	ck_assert_msg(fork_as("forked", 0, &err) == 0, "%s", err.text);
	ck_assert_uint_ne(step_watch_generation(store_step_watch(fixture.store.store),
				  span_text("bucket"), span_text("forked")),
		seen);
	const struct step_message first = first_step("forked");
	ck_assert(span_equal_text(first.label, "label") &&
		span_equal_text(first.metadata, "{\"loss\":\"2\"}"));
	ck_assert(span_equal_text(first.forms[0].format, "sharded"));
	ck_assert(first.file_count == 1 && first.forms[0].object_count == 1);
	ck_assert(span_equal(first.tensor_digests, step.tensor_digests));
}
END_TEST

START_TEST(no_run_begins_at_a_step_whose_proof_failed)
{
	struct run_message run;
	step_fixture_publish(&fixture, 0, STEP_WITH_ANCHOR);
	step_fixture_publish(&fixture, 1, STEP_WITH_DELTA);
	step_fixture_publish(&fixture, 2, STEP_WRONG_DELTA | STEP_WITH_ANCHOR);
	ck_assert_uint_eq(step_fixture_settle(&fixture), 0);
	ck_assert_int_eq(step_fixture_verified(&fixture, 2), STEP_PROOF_FAILED);
	expect_refused("forked", 2, ERROR_STEP_FAILED);
	ck_assert_int_ne(find_run("forked", &run), 0);
}
END_TEST

START_TEST(an_anchor_is_made_for_a_fork)
{
	struct error err = {0};
	step_fixture_publish(&fixture, 0, STEP_WITH_ANCHOR);
	step_fixture_publish(&fixture, 1, STEP_WITH_DELTA);
	step_fixture_publish(&fixture, 2, STEP_WITH_DELTA);
	expect_refused("forked", 1, ERROR_NOT_READY);
	ck_assert_uint_eq(step_fixture_settle(&fixture), 0);
	ck_assert_msg(fork_as("forked", 1, &err) == 0, "%s", err.text);
	expect_forked("forked", 1);
}
END_TEST

START_TEST(what_is_not_there_is_not_forked_and_what_is_there_not_replaced)
{
	struct error err = {0};
	const struct run_fork_params params = {
		.open.run = run_named(span_text("bucket"), span_text("forked")),
		.from = span_text("unknown"),
	};
	ck_assert_int_eq(fixture_call(run_fork_call(fixture.store.store, &params), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_RUN);
	step_fixture_publish(&fixture, 0, STEP_WITH_ANCHOR);
	expect_refused("forked", 1, ERROR_NO_STEP);
	expect_refused("run", 0, ERROR_EXISTS);
}
END_TEST

Suite *test_run_fork_suite(void);

Suite *test_run_fork_suite(void)
{
	Suite *const suite = suite_create("run_fork");
	TCase *const tests = tcase_create("run_fork");
	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_fork_has_the_bytes_and_the_proof_of_the_step);
	tcase_add_test(tests, a_fork_says_what_the_step_said);
	tcase_add_test(tests, no_run_begins_at_a_step_whose_proof_failed);
	tcase_add_test(tests, an_anchor_is_made_for_a_fork);
	tcase_add_test(tests, what_is_not_there_is_not_forked_and_what_is_there_not_replaced);
	suite_add_tcase(suite, tests);
	return suite;
}
