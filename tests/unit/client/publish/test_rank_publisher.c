/* A rank that publishes alone: what its steps are made of, what a failed call leaves to the next
 * one, and that a worker ends with exactly the published weights. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/local/folder_files.h"
#include "client/publish/rank_publisher.h"
#include "client/work/progress.h"
#include "client/work/stop.h"
#include "tests/unit/client/training_fixture.h"

static const char COPY[] = "rank-00000-of-00001/step-000000/checkpoint";

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

static struct command_result publish_as(const char *rank, const char *more, const char *state)
{
	char words[256];
	snprintf(words, sizeof words, "--rank %s %s", rank, more);
	return training_publish(&training, words, state);
}

static struct command_result publish(const char *more, const char *state)
{
	return publish_as("0/1", more, state);
}

static void publish_ok(unsigned iteration, const char *state, const char *said)
{
	training_write(&training, iteration);
	training_expect_ok(publish("", state), said);
}

START_TEST(the_first_step_is_an_anchor_and_all_others_are_deltas)
{
	publish_ok(0, "ranks", "\"step\":0");
	training_expect_worker(&training, 0);
	for (unsigned i = 1; i < 3; i++) {
		publish_ok(i, "ranks", "\"published\"");
		const struct step_message *const step = run_server_step(server, i);
		ck_assert_ptr_eq(step_message_form(step, STEP_ANCHOR), NULL);
		ck_assert_uint_lt(
			step_form_bytes(step_message_form(step, STEP_DELTA)), TRAINING_SHARD_BYTES);
		training_expect_worker(&training, i);
	}
}
END_TEST

/* Another trainer with the same epoch, for example a job that was restarted elsewhere. */
START_TEST(a_rank_that_missed_a_step_goes_on_from_the_head)
{
	publish_ok(0, "ranks", "\"step\":0");
	training_write(&training, 1);
	training_expect_ok(publish("--epoch 1", "other"), "\"step\":1");
	publish_ok(2, "ranks", "\"step\":2");
	training_expect_worker(&training, 2);
}
END_TEST

/* The copy is not synced: a power cut may have taken bytes of it. */
START_TEST(a_copy_that_was_spoilt_on_the_disk_is_fetched_again)
{
	char name[256];
	publish_ok(0, "ranks", "\"step\":0");
	snprintf(name, sizeof name, "ranks/%s/b.safetensors", COPY);
	if (_i == 0)
		training_put(&training, name, span_text("no safetensors"));
	else
		training_put_shard(&training, name, "b", 70);
	publish_ok(1, "ranks", "\"step\":1");
	training_expect_worker(&training, 1);
}
END_TEST

static char told[4096];

static void test_rank_publisher_take(void *owner, const char *sentence, bool is_warning)
{
	(void)owner;
	(void)is_warning;
	const size_t used = strlen(told);
	snprintf(told + used, sizeof told - used, "%s\n", sentence);
}

static void test_rank_publisher_stop(void *owner, const struct progress_facts *facts)
{
	if (strcmp(facts->what, "comparing with the step before") == 0)
		stop_give(owner, STOP_CANCELLED);
}

/* Without another pass over the copy, and without the question whether it is whole. */
START_TEST(the_word_to_stop_ends_a_comparison_at_once)
{
	char name[256];
	struct error err = {0};
	struct publish_outcome outcome;
	struct stop *const stop = stop_new();
	const struct progress_sink sink = {.show = test_rank_publisher_stop, .owner = stop};
	struct session session = {.files = file_system(),
		.stop = stop,
		.progress = &sink,
		.output = {.told = test_rank_publisher_take},
		.remote_options = {.endpoint = web_endpoint(server->web)}};
	told[0] = '\0';
	publish_ok(0, "ranks", "\"step\":0");
	snprintf(name, sizeof name, "ranks/%s/b.safetensors", COPY);
	training_put_shard(&training, name, "b", 70);
	training_write(&training, 1);
	char *const trained = folder_files_join(training.scratch, "trained");
	char *const state = folder_files_join(training.scratch, "ranks");
	const struct publish_order order = {
		.checkpoint = trained, .state_folder = state, .threads = 1};
	const struct rank_order rank = {.rank = 0, .ranks = 1};
	ck_assert_int_eq(rank_publisher_run(&session, "b/r", &order, &rank, &outcome, &err), -1);
	ck_assert_msg(err.kind == ERROR_BUSY, "%s", err.text);
	ck_assert_str_eq(told, "");
	free(state);
	free(trained);
	stop_free(stop);
	training_expect_ok(publish("", "ranks"), "\"step\":1");
	training_expect_worker(&training, 1);
}
END_TEST

START_TEST(a_step_is_published_when_every_rank_has_put_its_part)
{
	publish_ok(0, "ranks", "\"step\":0");
	training_write(&training, 1);
	server->waits = 2;
	training_expect_failed(publish("--wait 0", "ranks"), ERROR_NOT_READY);
	training_expect_failed(publish("--wait 0", "ranks"), ERROR_NOT_READY);
	ck_assert_uint_eq(server->count, 1);
	ck_assert_str_eq(server->latest, "?wait=0&after=0&head=true");
	training_expect_ok(publish("", "ranks"), "\"step\":1,");
	training_expect_worker(&training, 1);
}
END_TEST

START_TEST(the_first_step_is_waited_for_as_well)
{
	training_write(&training, 0);
	server->waits = 1;
	training_expect_failed(publish("--wait 0", "ranks"), ERROR_NOT_READY);
	ck_assert_str_eq(server->latest, "?wait=0&head=true");
	run_server_complete(server);
	training_expect_ok(publish("", "ranks"), "\"already\":true");
	training_expect_worker(&training, 0);
}
END_TEST

/* The caller saw the first call fail, and still has the same weights, or newer ones. */
START_TEST(a_step_that_the_others_completed_meanwhile_is_done)
{
	publish_ok(0, "ranks", "\"step\":0");
	training_write(&training, 1);
	server->waits = 1;
	training_expect_failed(publish("--wait 0", "ranks"), ERROR_NOT_READY);
	run_server_complete(server);
	if (_i == 0)
		training_expect_ok(publish("", "ranks"), "\"already\":true");
	publish_ok(2, "ranks", "\"step\":2");
	ck_assert_uint_eq(server->count, 3);
	training_expect_worker(&training, 2);
}
END_TEST

/* The rank's own weights come after the other trainer's. */
START_TEST(a_step_that_others_took_meanwhile_is_gone_on_from)
{
	publish_ok(0, "ranks", "\"step\":0");
	training_write(&training, 1);
	server->waits = 1;
	training_expect_failed(publish("--wait 0", "ranks"), ERROR_NOT_READY);
	training_write(&training, 5);
	training_expect_ok(publish("--epoch 1", "other"), "\"step\":1");
	publish_ok(1, "ranks", "\"step\":2");
	training_expect_worker(&training, 1);
}
END_TEST

START_TEST(a_step_that_others_published_is_not_taken_for_ours)
{
	publish_ok(0, "ranks", "\"step\":0");
	training_write(&training, 1);
	server->is_of_others = true;
	training_expect_failed(publish("", "ranks"), ERROR_STEP_DIFFERS);
	training_expect_failed(publish("--step 1", "ranks"), ERROR_STEP_DIFFERS);
}
END_TEST

START_TEST(a_rank_of_a_trainer_that_was_fenced_sends_nothing)
{
	publish_ok(0, "ranks", "\"step\":0");
	server->epoch++;
	web_forget_trace(server->web);
	training_write(&training, 1);
	training_expect_failed(publish("", "ranks"), ERROR_STALE_EPOCH);
	ck_assert_ptr_eq(strstr(web_trace(server->web), "PUT "), NULL);
	training_expect_ok(publish("--take-over", "ranks"), "\"step\":1");
	training_expect_worker(&training, 1);
}
END_TEST

static void expect_part(const char *rank, const char *more, uint64_t epoch, const char *file)
{
	server->waits = 1;
	training_expect_failed(publish_as(rank, more, "ranks"), ERROR_NOT_READY);
	ck_assert_uint_eq(server->waiting.epoch, epoch);
	ck_assert(span_equal_text(server->waiting.files[0].path, file));
}

/* Rank 0 opens the run; the others learn the epoch from the folder that they share. */
START_TEST(all_ranks_are_one_writer)
{
	training_write(&training, 0);
	training_expect_failed(publish_as("1/2", "--wait 0", "ranks"), ERROR_NOT_READY);
	ck_assert_str_eq(web_trace(server->web), "");
	expect_part("0/2", "--wait 0", 1, "a.safetensors");
	expect_part("1/2", "--wait 0", 1, "b.safetensors");
	expect_part("0/2", "--wait 0 --take-over", 2, "a.safetensors");
	expect_part("1/2", "--wait 0", 2, "b.safetensors");
	server->epoch = 7; /* opened by the job that starts the ranks */
	expect_part("0/2", "--wait 0 --epoch 7", 7, "a.safetensors");
	expect_part("1/2", "--wait 0", 7, "b.safetensors");
	expect_part("1/2", "--wait 0 --epoch 7", 7, "b.safetensors");
}
END_TEST

/* The rank that has that number now has other shards. */
START_TEST(a_job_may_go_on_with_more_ranks)
{
	publish_ok(0, "ranks", "\"step\":0");
	training_write(&training, 1);
	expect_part("0/2", "--wait 0", 2, "a.safetensors");
	ck_assert_int_eq(server->waiting.forms[0].kind, STEP_DELTA);
	expect_part("1/2", "--wait 0", 2, "b.safetensors");
	ck_assert_int_eq(server->waiting.forms[0].kind, STEP_DELTA);
}
END_TEST

/* Otherwise one step would be made of the weights of two iterations. */
START_TEST(a_rank_that_is_not_where_the_run_is_is_refused)
{
	publish_ok(0, "ranks", "\"step\":0");
	publish_ok(1, "ranks", "\"step\":1");
	training_write(&training, 3);
	training_expect_failed(publish("--step 3", "ranks"), ERROR_HEAD_MOVED);
	training_expect_failed(publish("--step 0", "ranks"), ERROR_HEAD_MOVED);
	ck_assert_uint_eq(server->count, 2);
}
END_TEST

START_TEST(an_anchor_that_is_asked_for_carries_another_config)
{
	publish_ok(0, "ranks", "\"step\":0");
	training_write(&training, 1);
	training_put(&training, "trained/config.json", span_text("{\"a\": 2}"));
	training_expect_failed(publish("", "ranks"), ERROR_UNSUPPORTED);
	training_expect_ok(publish("--anchor always", "ranks"), "\"step\":1");
	ck_assert_ptr_ne(step_message_form(run_server_step(server, 1), STEP_ANCHOR), NULL);
	training_expect_worker(&training, 1);
}
END_TEST

/* The weights are divided differently: no rank has a base with the names of its shards. */
static void divide_anew(void)
{
	struct error err = {0};
	char *const folder = folder_files_join(training.scratch, "trained");
	ck_assert_int_eq(file_remove_tree(file_system(), folder, &err), 0);
	training_put_shard(&training, "trained/c.safetensors", "a", 1);
	training_put_shard(&training, "trained/d.safetensors", "b", 2);
	training_put(&training, "trained/model.safetensors.index.json",
		span_text("{\"weight_map\":{\"a\":\"c.safetensors\",\"b\":\"d.safetensors\"}}"));
	training_put(&training, "trained/config.json", span_text("{\"a\": 1}"));
	free(folder);
}

START_TEST(shards_of_other_names_come_whole)
{
	publish_ok(0, "ranks", "\"step\":0");
	training_write(&training, 1); /* the server finds its digest */
	divide_anew();
	struct command_result never = publish("--anchor never", "ranks");
	ck_assert_ptr_ne(strstr(never.err.text, "has no file c.safetensors"), NULL);
	ck_assert_ptr_ne(strstr(never.err.text, "--anchor auto"), NULL);
	training_expect_failed(never, ERROR_UNSUPPORTED);
	training_expect_ok(publish("", "ranks"), "\"step\":1");
	ck_assert_ptr_ne(step_message_form(run_server_step(server, 1), STEP_ANCHOR), NULL);
	training_expect_worker(&training, 1);
}
END_TEST

/* Only rank 0 sees these files, so the ranks would not agree. */
START_TEST(tensors_below_the_folder_are_no_shards)
{
	publish_ok(0, "ranks", "\"step\":0");
	training_write(&training, 1);
	training_put_shard(&training, "trained/adapter/a.safetensors", "a", 1);
	struct command_result refused = publish("", "ranks");
	ck_assert_ptr_ne(strstr(refused.err.text, "--anchor always, on every rank"), NULL);
	training_expect_failed(refused, ERROR_UNSUPPORTED);
}
END_TEST

START_TEST(a_head_that_failed_its_proof_is_followed_by_a_full_copy)
{
	publish_ok(0, "ranks", "\"step\":0");
	server->steps[0].verified = STEP_PROOF_FAILED;
	training_write(&training, 1);
	training_expect_failed(publish("--anchor never", "ranks"), ERROR_STEP_FAILED);
	training_expect_ok(publish("", "ranks"), "\"step\":1");
	ck_assert_ptr_ne(step_message_form(run_server_step(server, 1), STEP_ANCHOR), NULL);
	training_expect_worker(&training, 1);
}
END_TEST

/* Taking over has no effect before the rank's part is ready. */
START_TEST(a_taker_that_is_refused_has_ended_nobody)
{
	publish_ok(0, "ranks", "\"step\":0");
	training_write(&training, 1);
	training_expect_failed(publish("--take-over --step 9", "others"), ERROR_HEAD_MOVED);
	training_put(&training, "trained/config.json", span_text("{\"a\": 2}"));
	training_expect_failed(publish("--take-over", "others"), ERROR_UNSUPPORTED);
	server->steps[0].forms[0].objects[0].url = span_text("objects/r/gone");
	training_write(&training, 1);
	training_expect_failed(publish("--take-over", "newcomers"), ERROR_NO_KEY);
	ck_assert_uint_eq(server->epoch, 1);
	training_expect_ok(publish("", "ranks"), "\"step\":1");
}
END_TEST

/* The message is right both for ranks that have published and for ranks that have not. */
START_TEST(ranks_that_were_fenced_are_told_what_happened)
{
	publish_ok(0, "ranks", "\"step\":0");
	server->epoch++;
	training_write(&training, 1);
	struct command_result fenced = publish_as("0/2", "--wait 0", "ranks");
	ck_assert_ptr_ne(
		strstr(fenced.err.text, "another publisher has taken over run b/r since"), NULL);
	ck_assert_ptr_ne(strstr(fenced.err.text, "--take-over"), NULL);
	training_expect_failed(fenced, ERROR_STALE_EPOCH);
	struct command_result stranger = publish_as("0/2", "--wait 0", "strangers");
	ck_assert_ptr_ne(strstr(stranger.err.text, "has never published to it"), NULL);
	training_expect_failed(stranger, ERROR_STALE_EPOCH);
}
END_TEST

START_TEST(a_rank_waits_no_more_when_its_trainer_was_fenced)
{
	publish_ok(0, "ranks", "\"step\":0");
	training_write(&training, 1);
	server->waits = 1;
	server->is_fenced = true;
	training_expect_failed(publish("--wait 0", "ranks"), ERROR_STALE_EPOCH);
}
END_TEST

Suite *test_rank_publisher_suite(void);
Suite *test_rank_publisher_suite(void)
{
	Suite *const suite = suite_create("rank_publisher");
	TCase *const tests = tcase_create("rank_publisher");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, the_first_step_is_an_anchor_and_all_others_are_deltas);
	tcase_add_test(tests, a_rank_that_missed_a_step_goes_on_from_the_head);
	tcase_add_loop_test(tests, a_copy_that_was_spoilt_on_the_disk_is_fetched_again, 0, 2);
	tcase_add_test(tests, the_word_to_stop_ends_a_comparison_at_once);
	tcase_add_test(tests, a_step_is_published_when_every_rank_has_put_its_part);
	tcase_add_test(tests, the_first_step_is_waited_for_as_well);
	tcase_add_loop_test(tests, a_step_that_the_others_completed_meanwhile_is_done, 0, 2);
	tcase_add_test(tests, a_step_that_others_published_is_not_taken_for_ours);
	tcase_add_test(tests, a_rank_of_a_trainer_that_was_fenced_sends_nothing);
	tcase_add_test(tests, a_step_that_others_took_meanwhile_is_gone_on_from);
	tcase_add_test(tests, all_ranks_are_one_writer);
	tcase_add_test(tests, a_job_may_go_on_with_more_ranks);
	tcase_add_test(tests, a_rank_that_is_not_where_the_run_is_is_refused);
	tcase_add_test(tests, an_anchor_that_is_asked_for_carries_another_config);
	tcase_add_test(tests, a_rank_waits_no_more_when_its_trainer_was_fenced);
	tcase_add_test(tests, shards_of_other_names_come_whole);
	tcase_add_test(tests, tensors_below_the_folder_are_no_shards);
	tcase_add_test(tests, a_head_that_failed_its_proof_is_followed_by_a_full_copy);
	tcase_add_test(tests, a_taker_that_is_refused_has_ended_nobody);
	tcase_add_test(tests, ranks_that_were_fenced_are_told_what_happened);
	suite_add_tcase(suite, tests);
	return suite;
}
