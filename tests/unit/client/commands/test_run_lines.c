/* The lines that publish and follow print about a step, for programs and for people, and the facts
 * that ranks put into their parts. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "base/format/json_node.h"
#include "tests/unit/client/training_fixture.h"

static struct training training;
static struct run_server *const server = &training.server;

static void set_up(void)
{
	training_start(&training);
}

static void tear_down(void)
{
	training_stop(&training);
}

/* The last line of the output; the caller's. */
static struct json_node *last_line(struct command_result result)
{
	struct error err = {0};
	struct span rest = buffer_span(&result.output);
	struct span line = {0};
	ck_assert_msg(result.status == 0, "%s", result.err.text);
	while (rest.len > 0)
		span_split(&rest, '\n', &line);
	struct json_node *const root = json_node_parse(line, "the line", &err);
	ck_assert_msg(root != NULL, "%s", err.text);
	command_result_release(&result);
	return root;
}

static uint64_t number(const struct json_node *line, const char *name)
{
	uint64_t value = 0;
	ck_assert_msg(json_node_u64(json_node_member(line, name), &value), "%s is missing", name);
	return value;
}

static bool says(const struct json_node *line, const char *name, const char *wanted)
{
	struct span text = {0};
	return json_node_text(json_node_member(line, name), &text) && span_equal_text(text, wanted);
}

static bool is_true(const struct json_node *line, const char *name)
{
	bool value = false;
	ck_assert_msg(json_node_bool(json_node_member(line, name), &value), "%s is missing", name);
	return value;
}

static uint64_t form_bytes(const struct step_message *step, enum step_form_kind kind)
{
	const struct step_form *const form = step_message_form(step, kind);
	return form == NULL ? 0 : step_form_bytes(form);
}

static uint64_t file_bytes(const struct step_message *step)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < step->file_count; i++)
		bytes += step->files[i].size;
	return bytes;
}

static void expect_published(const struct json_node *line, uint64_t number_of_it)
{
	const struct step_message *const step = run_server_step(server, number_of_it);
	char digest[DIGEST128_TEXT_BYTES];
	digest128_format(&step->digest, digest);
	ck_assert(says(line, "event", "published") && says(line, "run", "b/r") &&
		says(line, "digest", digest));
	ck_assert_uint_eq(number(line, "step"), number_of_it);
	ck_assert(!is_true(line, "already"));
	/* a rank reports the size of its share */
	ck_assert_uint_le(number(line, "checkpoint_bytes"), file_bytes(step));
	ck_assert_uint_gt(number(line, "checkpoint_bytes"), file_bytes(step) * 9 / 10);
	ck_assert_uint_eq(number(line, "delta_bytes"), form_bytes(step, STEP_DELTA));
	ck_assert_uint_eq(number(line, "anchor_bytes"), form_bytes(step, STEP_ANCHOR));
	ck_assert_uint_ge(
		number(line, "total_ms") + 2, number(line, "diff_ms") + number(line, "upload_ms"));
}

static void publish_two(const char *rank)
{
	for (unsigned i = 0; i < 2; i++) {
		char words[256];
		snprintf(words, sizeof words, "%s --label it-%u --metadata lr=%u", rank, i, i);
		training_write(&training, i);
		struct json_node *const line =
			last_line(training_publish(&training, words, "state"));
		expect_published(line, i);
		ck_assert(says(line, "label", i == 0 ? "it-0" : "it-1"));
		ck_assert_uint_eq(number(line, "elements") > 0, i > 0);
		json_node_free(line);
	}
}

START_TEST(a_published_step_is_told_as_it_is)
{
	publish_two("");
}
END_TEST

/* The part of each rank has the step's label and metadata. */
START_TEST(a_rank_tells_the_step_as_it_is)
{
	publish_two("--rank 0/1");
	const struct step_message *const step = run_server_step(server, 1);
	ck_assert(span_equal_text(step->label, "it-1"));
	ck_assert(span_equal_text(step->metadata, "{\"lr\":\"1\"}"));
}
END_TEST

static struct command_result follow(const char *more)
{
	char words[4096];
	snprintf(words, sizeof words,
		"%s --retries 0 --threads 1 --run b/r --once --into %s/worker", more,
		training.scratch);
	return command_fixture_run(
		command_follow, COMMAND_FOLLOW, web_endpoint(server->web), words);
}

static void expect_came(unsigned to, uint64_t links, bool from_anchor, uint64_t bytes)
{
	struct json_node *const line = last_line(follow("--json --quiet"));
	char digest[DIGEST128_TEXT_BYTES];
	digest128_format(&run_server_step(server, to)->digest, digest);
	ck_assert(says(line, "event", "step") && says(line, "run", "b/r") &&
		says(line, "digest", digest));
	ck_assert_uint_eq(number(line, "step"), to);
	ck_assert_uint_eq(number(line, "links"), links);
	ck_assert_uint_eq(number(line, "bytes"), bytes);
	ck_assert(is_true(line, "from_anchor") == from_anchor);
	ck_assert(json_node_member(line, "fetch_ms") != NULL &&
		json_node_member(line, "apply_ms") != NULL);
	json_node_free(line);
}

START_TEST(a_step_that_came_is_told_as_it_is)
{
	training_step(&training, 0, "state", "\"step\":0");
	expect_came(0, 1, true, form_bytes(run_server_step(server, 0), STEP_ANCHOR));
	training_step(&training, 1, "state", "\"step\":1");
	training_step(&training, 2, "state", "\"step\":2");
	expect_came(2, 2, false,
		form_bytes(run_server_step(server, 1), STEP_DELTA) +
			form_bytes(run_server_step(server, 2), STEP_DELTA));
	struct json_node *const line = last_line(follow("--json --quiet"));
	ck_assert(says(line, "event", "held"));
	ck_assert_uint_eq(number(line, "step"), 2);
	json_node_free(line);
}
END_TEST

static struct command_result publish_plainly(const char *more)
{
	char words[4096];
	snprintf(words, sizeof words,
		"%s --retries 0 --threads 1 --run b/r --state %s/state %s/trained", more,
		training.scratch, training.scratch);
	return command_fixture_run(
		command_publish, COMMAND_PUBLISH, web_endpoint(server->web), words);
}

START_TEST(people_read_sentences)
{
	training_write(&training, 0);
	training_expect_ok(publish_plainly("--label first"), "published step 0 of b/r: anchor ");
	training_expect_ok(follow(""), "step 0 (first): ");
	training_expect_ok(follow(""), "step 0 is held already\n");
	training_write(&training, 1);
	training_expect_ok(publish_plainly("--anchor always"), ", anchor ");
	training_expect_ok(publish_plainly("--step 1"), "step 1 of b/r was published already\n");
	training_write(&training, 2);
	training_expect_ok(publish_plainly(""), "published step 2 of b/r: delta ");
	training_expect_ok(follow(""), "step 2: ");
	struct command_result quiet = follow("--quiet");
	ck_assert_uint_eq(quiet.output.len, 0);
	command_result_release(&quiet);
}
END_TEST

Suite *test_run_lines_suite(void);

Suite *test_run_lines_suite(void)
{
	Suite *const suite = suite_create("run_lines");
	TCase *const tests = tcase_create("run_lines");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_published_step_is_told_as_it_is);
	tcase_add_test(tests, a_rank_tells_the_step_as_it_is);
	tcase_add_test(tests, a_step_that_came_is_told_as_it_is);
	tcase_add_test(tests, people_read_sentences);
	suite_add_tcase(suite, tests);
	return suite;
}
