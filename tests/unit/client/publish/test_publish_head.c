/* How a publisher settles with the run: when the run is gone, when its head cannot be fetched, or
 * when its head has other content; and in which forms a step is published. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/local/folder_files.h"
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

static bool has_form(uint64_t step, enum step_form_kind kind)
{
	return step_message_form(run_server_step(server, step), kind) != NULL;
}

static void remove_run(void)
{
	server->epoch = 0;
	server->count = 0;
}

/* A follower that starts late has fewer deltas to fetch from the anchor on. */
START_TEST(an_anchor_comes_when_the_server_says_that_one_is_due)
{
	training_step(&training, 0, "state", "\"step\":0");
	training_step(&training, 1, "state", "\"step\":1");
	server->anchor_due = true;
	training_step(&training, 2, "state", "\"anchor_due\":true,");
	server->anchor_due = false;
	training_step(&training, 3, "state", "\"step\":3");
	ck_assert(!has_form(1, STEP_ANCHOR) && !has_form(3, STEP_ANCHOR));
	ck_assert(has_form(2, STEP_ANCHOR) && has_form(2, STEP_DELTA));
}
END_TEST

static void write_tiny(char value)
{
	static const char header[] =
		"{\"a\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}";
	char bytes[100] = {sizeof header - 1};
	memcpy(bytes + 8, header, sizeof header - 1);
	memset(bytes + 8 + sizeof header - 1, value, 4);
	training_put(
		&training, "trained/model.safetensors", span_of(bytes, 8 + sizeof header - 1 + 4));
}

/* Readers would fetch more bytes with the delta. */
START_TEST(a_delta_that_is_larger_than_the_whole_is_none)
{
	for (char i = 0; i < 2; i++) {
		write_tiny(i + 1);
		training_expect_ok(training_publish(&training, "", "state"), "\"published\"");
		ck_assert(has_form((uint64_t)i, STEP_ANCHOR) && !has_form((uint64_t)i, STEP_DELTA));
	}
}
END_TEST

START_TEST(a_run_that_is_gone_is_begun_anew_on_demand_alone)
{
	training_step(&training, 0, "state", "\"step\":0");
	remove_run();
	training_write(&training, 1);
	training_expect_failed(training_publish(&training, "", "state"), ERROR_NO_RUN);
	ck_assert_uint_eq(server->epoch, 0);
	training_expect_ok(training_publish(&training, "--take-over", "state"), "\"step\":0");
	ck_assert(has_form(0, STEP_ANCHOR));
	training_expect_worker(&training, 1);
}
END_TEST

/* The run has a step with our last number that is not ours. */
START_TEST(a_run_that_was_begun_anew_by_others_is_gone_on_with_from_their_step)
{
	training_step(&training, 0, "state", "\"step\":0");
	remove_run();
	training_step(&training, 5, "other", "\"step\":0");
	training_write(&training, 1);
	training_expect_failed(training_publish(&training, "", "state"), ERROR_HEAD_MOVED);
	training_expect_ok(training_publish(&training, "--take-over", "state"), "\"step\":1");
	ck_assert(has_form(1, STEP_DELTA));
	training_expect_worker(&training, 1);
}
END_TEST

START_TEST(a_run_that_is_gone_before_its_first_step_is_opened_again)
{
	training_write(&training, 0);
	server->refusals = 1;
	training_expect_failed(training_publish(&training, "", "state"), ERROR_NO_SPACE);
	remove_run();
	training_expect_ok(training_publish(&training, "", "state"), "\"step\":0");
	training_expect_worker(&training, 0);
}
END_TEST

START_TEST(a_baseline_that_could_not_be_fetched_is_fetched_by_the_next_call)
{
	training_step(&training, 0, "state", "\"step\":0");
	training_step(&training, 1, "state", "\"step\":1");
	server->lost = 1000;
	training_write(&training, 2);
	training_expect_failed(training_publish(&training, "--take-over", "other"), ERROR_NO_KEY);
	server->lost = 0;
	training_expect_failed(training_publish(&training, "", "other"), ERROR_STALE_EPOCH);
	training_expect_ok(training_publish(&training, "--take-over", "other"), "\"step\":2");
	ck_assert(has_form(2, STEP_DELTA));
	training_expect_worker(&training, 2);
}
END_TEST

/* The weights are the same, but the config is not. */
START_TEST(a_step_with_another_config_is_not_the_one_that_was_refused)
{
	training_step(&training, 0, "state", "\"step\":0");
	training_write(&training, 1);
	server->refusals = 1;
	training_expect_failed(training_publish(&training, "", "state"), ERROR_NO_SPACE);
	training_put(&training, "trained/config.json", span_text("{\"a\": 2}"));
	training_expect_ok(training_publish(&training, "--take-over", "other"), "\"step\":1");
	training_write(&training, 1);
	training_expect_ok(training_publish(&training, "--take-over", "state"), "\"step\":2");
	training_expect_worker(&training, 1);
}
END_TEST

START_TEST(a_step_that_is_named_is_published_also_without_a_change)
{
	training_step(&training, 0, "state", "\"step\":0");
	training_expect_ok(training_publish(&training, "--step 1", "state"), "\"step\":1,");
	training_expect_ok(training_publish(&training, "--step 1", "state"), "\"already\":true");
	ck_assert_uint_eq(server->count, 2);
}
END_TEST

/* Publishes two steps and damages the second on the server. */
static void fail_head(void)
{
	training_step(&training, 0, "state", "\"step\":0");
	training_step(&training, 1, "state", "\"step\":1");
	server->steps[1].verified = STEP_PROOF_FAILED;
	server->steps[1].verify_error = span_text("its delta leads elsewhere");
	training_write(&training, 2);
}

static void expect_whole(void)
{
	ck_assert(has_form(2, STEP_ANCHOR) && !has_form(2, STEP_DELTA));
	training_expect_worker(&training, 2);
	training_step(&training, 3, "state", "\"step\":3");
	ck_assert(has_form(3, STEP_DELTA) && !has_form(3, STEP_ANCHOR));
	training_expect_worker(&training, 3);
}

static const char *const whole_words[] = {
	"", "--anchor auto --step 2", "--anchor always", "--anchor 7", "--take-over"};

/* Such a step is not a base, whether its bytes are at hand or not. */
START_TEST(a_head_that_failed_its_proof_is_followed_by_a_full_copy)
{
	fail_head();
	training_expect_ok(training_publish(&training, whole_words[_i], "state"), "\"step\":2,");
	expect_whole();
}
END_TEST

START_TEST(a_trainer_without_a_state_follows_a_failed_head_too)
{
	struct error err = {0};
	char *const state = folder_files_join(training.scratch, "state");
	fail_head();
	ck_assert_int_eq(file_remove_tree(file_system(), state, &err), 0);
	training_expect_ok(training_publish(&training, "--take-over", "state"), "\"step\":2,");
	expect_whole();
	free(state);
}
END_TEST

START_TEST(a_failed_head_is_followed_by_no_delta_alone)
{
	fail_head();
	struct command_result refused = training_publish(&training, "--anchor never", "state");
	ck_assert_ptr_ne(
		strstr(refused.err.text, "failed its proof (its delta leads elsewhere)"), NULL);
	ck_assert_ptr_ne(strstr(refused.err.text, "--anchor auto"), NULL);
	training_expect_failed(refused, ERROR_STEP_FAILED);
	training_expect_ok(training_publish(&training, "", "state"), "\"step\":2,");
	expect_whole();
}
END_TEST

/* The step is not proven yet. */
START_TEST(a_head_that_comes_damaged_is_followed_by_a_full_copy)
{
	training_step(&training, 0, "state", "\"step\":0");
	training_step(&training, 1, "state", "\"step\":1");
	training_write(&training, 2);
	server->flips = 1000;
	training_expect_ok(training_publish(&training, "--take-over", "other"), "\"step\":2,");
	server->flips = 0;
	ck_assert(has_form(2, STEP_ANCHOR) && !has_form(2, STEP_DELTA));
	training_expect_worker(&training, 2);
}
END_TEST

static const struct {
	const char *words;
	enum error_kind kind;
} refused_takers[] = {
	{"--take-over --step 9", ERROR_HEAD_MOVED},
	{"--take-over --step 1", ERROR_STEP_DIFFERS}, /* it exists, with other weights */
};

static void expect_healthy(void)
{
	training_expect_ok(training_publish(&training, "", "state"), "\"step\":2");
}

/* The trainer that it wanted to replace continues. */
START_TEST(a_taker_that_is_refused_has_ended_nobody)
{
	training_step(&training, 0, "state", "\"step\":0");
	training_step(&training, 1, "state", "\"step\":1");
	training_write(&training, 2);
	training_expect_failed(training_publish(&training, refused_takers[_i].words, "other"),
		refused_takers[_i].kind);
	expect_healthy();
}
END_TEST

START_TEST(a_taker_with_other_tensors_has_ended_nobody)
{
	training_step(&training, 0, "state", "\"step\":0");
	training_step(&training, 1, "state", "\"step\":1");
	training_put_shard(&training, "trained/b.safetensors", "c", 2);
	training_put(&training, "trained/model.safetensors.index.json",
		span_text("{\"weight_map\":{\"a\":\"a.safetensors\",\"c\":\"b.safetensors\"}}"));
	training_expect_failed(
		training_publish(&training, "--take-over", "other"), ERROR_SCHEMA_MISMATCH);
	training_write(&training, 2);
	expect_healthy();
}
END_TEST

/* The disk runs full at any point before the step is ready to be sent. */
START_TEST(a_taker_with_a_full_disk_has_ended_nobody)
{
	char words[4096];
	snprintf(words, sizeof words,
		"--json --quiet --retries 0 --threads 1 --run b/r --take-over --state %s/other %s/trained",
		training.scratch, training.scratch);
	training_step(&training, 0, "state", "\"step\":0");
	training_step(&training, 1, "state", "\"step\":1");
	training_write(&training, 2);
	int count = 0;
	for (; server->epoch == 1; count++) {
		struct file_faults faults;
		file_faults_init(&faults, FILE_FAULT_WRITE, count, ENOSPC);
		faults.sticky = true;
		struct command_result taker = command_fixture_run_on(&faults.ops, command_publish,
			COMMAND_PUBLISH, web_endpoint(server->web), words);
		ck_assert_msg(taker.status == 0 || taker.err.kind == ERROR_NO_SPACE, "%s",
			taker.err.text);
		command_result_release(&taker);
	}
	ck_assert_int_gt(count, 5);
}
END_TEST

/* One command is enough to recover. */
START_TEST(a_trainer_with_a_damaged_state_goes_on_by_taking_its_run_over)
{
	training_step(&training, 0, "state", "\"step\":0");
	training_step(&training, 1, "state", "\"step\":1");
	training_put(&training, "state/state.json", span_text("{\"version\":"));
	training_write(&training, 2);
	training_expect_failed(training_publish(&training, "", "state"), ERROR_CORRUPT);
	training_expect_ok(training_publish(&training, "--take-over", "state"), "\"step\":2");
	ck_assert(has_form(2, STEP_DELTA));
	training_expect_worker(&training, 2);
}
END_TEST

/* The trainer that is to be replaced publishes while the other one makes its delta. */
struct racing {
	struct file_ops ops; /* first */
	bool is_done;
};

static void publish_other(void)
{
	char words[4096];
	training_put_shard(&training, "older/a.safetensors", "a", 7);
	training_put_shard(&training, "older/b.safetensors", "b", 8);
	snprintf(words, sizeof words,
		"--json --quiet --retries 0 --threads 1 --run b/r --state %s/state %s/older",
		training.scratch, training.scratch);
	training_expect_ok(command_fixture_run(command_publish, COMMAND_PUBLISH,
				   web_endpoint(server->web), words),
		"\"step\":1,");
}

static int make_folder_late(const struct file_ops *ops, const char *path, mode_t mode)
{
	struct racing *const racing = (struct racing *)ops->state;
	if (!racing->is_done && strstr(path, "other/step-000001/.") != NULL) {
		racing->is_done = true;
		publish_other();
	}
	return file_system()->mkdir(file_system(), path, mode);
}

START_TEST(a_step_that_comes_before_the_run_is_taken_over_is_the_base)
{
	char words[4096];
	struct racing racing = {.ops = *file_system()};
	racing.ops.mkdir = make_folder_late;
	racing.ops.state = &racing;
	snprintf(words, sizeof words,
		"--json --quiet --retries 0 --threads 1 --run b/r --take-over --state %s/other %s/trained",
		training.scratch, training.scratch);
	training_step(&training, 0, "state", "\"step\":0");
	training_write(&training, 1);
	training_expect_ok(command_fixture_run_on(&racing.ops, command_publish, COMMAND_PUBLISH,
				   web_endpoint(server->web), words),
		"\"step\":2,");
	ck_assert(racing.is_done && has_form(2, STEP_DELTA));
	ck_assert_uint_eq(server->epoch, 2);
	training_expect_worker(&training, 1);
}
END_TEST

/* Replaces the checkpoint in its folder by the files of a delta. */
static void mistake_a_delta(void)
{
	struct error err = {0};
	char *const folder = folder_files_join(training.scratch, "trained");
	ck_assert_int_eq(file_remove_tree(file_system(), folder, &err), 0);
	for (size_t i = 0; i < server->object_count; i++) {
		char name[256] = "trained/";
		const char *const below = strstr(server->objects[i].target, "/delta/");
		if (below == NULL)
			continue;
		strncat(name, below + strlen("/delta/"), sizeof name - strlen(name) - 1);
		training_put(&training, name, buffer_span(&server->objects[i].bytes));
	}
	free(folder);
}

START_TEST(a_delta_that_is_published_by_mistake_is_refused)
{
	training_step(&training, 0, "state", "\"step\":0");
	training_step(&training, 1, "state", "\"step\":1");
	mistake_a_delta();
	web_forget_trace(server->web);
	training_expect_failed(training_publish(&training, "", "new"), ERROR_INVALID);
	ck_assert_ptr_eq(strstr(web_trace(server->web), "POST "), NULL);
}
END_TEST

Suite *test_publish_head_suite(void);
Suite *test_publish_head_suite(void)
{
	Suite *const suite = suite_create("publish_head");
	TCase *const tests = tcase_create("publish_head");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, an_anchor_comes_when_the_server_says_that_one_is_due);
	tcase_add_test(tests, a_delta_that_is_larger_than_the_whole_is_none);
	tcase_add_test(tests, a_run_that_is_gone_is_begun_anew_on_demand_alone);
	tcase_add_test(tests, a_run_that_was_begun_anew_by_others_is_gone_on_with_from_their_step);
	tcase_add_test(tests, a_run_that_is_gone_before_its_first_step_is_opened_again);
	tcase_add_test(tests, a_baseline_that_could_not_be_fetched_is_fetched_by_the_next_call);
	tcase_add_test(tests, a_step_with_another_config_is_not_the_one_that_was_refused);
	tcase_add_test(tests, a_step_that_is_named_is_published_also_without_a_change);
	tcase_add_test(tests, a_delta_that_is_published_by_mistake_is_refused);
	tcase_add_loop_test(tests, a_head_that_failed_its_proof_is_followed_by_a_full_copy, 0,
		sizeof whole_words / sizeof *whole_words);
	tcase_add_test(tests, a_trainer_without_a_state_follows_a_failed_head_too);
	tcase_add_test(tests, a_failed_head_is_followed_by_no_delta_alone);
	tcase_add_test(tests, a_head_that_comes_damaged_is_followed_by_a_full_copy);
	tcase_add_loop_test(tests, a_taker_that_is_refused_has_ended_nobody, 0,
		sizeof refused_takers / sizeof *refused_takers);
	tcase_add_test(tests, a_taker_with_other_tensors_has_ended_nobody);
	tcase_add_test(tests, a_taker_with_a_full_disk_has_ended_nobody);
	tcase_add_test(tests, a_trainer_with_a_damaged_state_goes_on_by_taking_its_run_over);
	tcase_add_test(tests, a_step_that_comes_before_the_run_is_taken_over_is_the_base);
	suite_add_tcase(suite, tests);
	return suite;
}
