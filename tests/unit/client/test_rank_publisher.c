/* A rank that publishes alone: what its steps are made of, what a call that failed leaves to the next
 * one, and that a worker ends with the very weights. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/catch_up.h"
#include "client/folder_files.h"
#include "tests/unit/client/command_fixture.h"
#include "tests/unit/client/run_server.h"

enum { BYTES = 4000 };

static const char INDEX[] = "{\"weight_map\":{\"a\":\"a.safetensors\",\"b\":\"b.safetensors\"}}";
static const char COPY[] = "rank-00000-of-00001/step-000000/checkpoint";

static char *scratch;
static struct run_server server;

static void set_up(void)
{
	scratch = unit_scratch_make();
	run_server_start(&server);
}

static void tear_down(void)
{
	run_server_stop(&server);
	unit_scratch_remove(scratch);
}

static void put(const char *const name, const struct span bytes)
{
	struct error err = {0};
	char *const path = folder_files_join(scratch, name);
	ck_assert_int_eq(folder_files_make_parent(file_system(), path, &err), 0);
	ck_assert_msg(file_place(file_system(), path, bytes, 0644, &err) == 0, "%s", err.text);
	free(path);
}

/* Some of the weights change from one iteration to the next. */
static void put_shard(const char *const name, const char *const tensor, const unsigned iteration)
{
	char header[128];
	struct buffer bytes;
	const int length = snprintf(header, sizeof header,
		"{\"%s\":{\"dtype\":\"BF16\",\"shape\":[%d],\"data_offsets\":[0,%d]}}", tensor,
		BYTES / 2, BYTES);
	const uint8_t prefix[8] = {(uint8_t)length};
	buffer_init(&bytes, 100000);
	buffer_add(&bytes, prefix, sizeof prefix);
	buffer_add_text(&bytes, header);
	for (unsigned i = 0; i < BYTES; i++)
		buffer_add_byte(&bytes, (uint8_t)(i * 7 + (i % 100 == 0 ? 2 * iteration : 0)));
	put(name, buffer_span(&bytes));
	buffer_release(&bytes);
}

/* As the server finds it from what all ranks say. */
static struct digest128 digest_of(const char *const name)
{
	struct error err = {0};
	struct digest128 digest;
	char *const path = folder_files_join(scratch, name);
	ck_assert_msg(catch_up_folder_digest(path, 1, &digest, &err) == 0, "%s", err.text);
	free(path);
	return digest;
}

static void write_checkpoint(const unsigned iteration)
{
	put_shard("trained/a.safetensors", "a", iteration);
	put_shard("trained/b.safetensors", "b", iteration + 1);
	put("trained/model.safetensors.index.json", span_text(INDEX));
	put("trained/config.json", span_text("{\"a\": 1}"));
	server.whole = digest_of("trained");
}

static struct command_result publish_as(const char *const rank, const char *const more,
	const char *const state)
{
	char words[4096];
	snprintf(words, sizeof words, "--json --quiet --retries 0 --threads 1 --run b/r --rank %s %s"
		" --state %s/%s %s/trained", rank, more, scratch, state, scratch);
	return command_fixture_run(command_publish, COMMAND_PUBLISH, web_endpoint(server.web), words);
}

static struct command_result publish(const char *const more, const char *const state)
{
	return publish_as("0/1", more, state);
}

static void expect_ok(struct command_result result, const char *const said)
{
	ck_assert_msg(result.status == 0, "%s", result.err.text);
	ck_assert_msg(strstr(buffer_text(&result.output), said) != NULL, "%s",
		buffer_text(&result.output));
	command_result_release(&result);
}

static void expect_failed(struct command_result result, const enum error_kind kind)
{
	ck_assert_int_eq(result.status, -1);
	ck_assert_msg(result.err.kind == kind, "%s: %s", error_kind_name(result.err.kind),
		result.err.text);
	command_result_release(&result);
}

static void publish_ok(const unsigned iteration, const char *const state, const char *const said)
{
	write_checkpoint(iteration);
	expect_ok(publish("", state), said);
}

/* A worker that comes now holds these weights in the end. */
static void expect_worker(const unsigned iteration)
{
	char words[4096];
	write_checkpoint(iteration);
	snprintf(words, sizeof words, "--json --quiet --retries 0 --threads 1 --run b/r --once --into %s/worker",
		scratch);
	expect_ok(command_fixture_run(command_follow, COMMAND_FOLLOW, web_endpoint(server.web), words),
		"");
	const struct digest128 held = digest_of("worker/current");
	ck_assert_msg(digest128_equal(&held, &server.whole), "not iteration %u", iteration);
}

START_TEST(the_first_step_is_an_anchor_and_all_others_are_deltas)
{
	publish_ok(0, "ranks", "\"step\":0");
	expect_worker(0);
	for (unsigned i = 1; i < 3; i++) {
		publish_ok(i, "ranks", "\"published\"");
		const struct step_message *const step = run_server_step(&server, i);
		ck_assert_ptr_eq(step_message_form(step, STEP_ANCHOR), NULL);
		ck_assert_uint_lt(step_form_bytes(step_message_form(step, STEP_DELTA)), BYTES);
		expect_worker(i);
	}
}
END_TEST

/* Another trainer with the same epoch: a job that was started anew elsewhere, say. */
START_TEST(a_rank_that_missed_a_step_goes_on_from_the_head)
{
	publish_ok(0, "ranks", "\"step\":0");
	write_checkpoint(1);
	expect_ok(publish("--epoch 1", "other"), "\"step\":1");
	publish_ok(2, "ranks", "\"step\":2");
	expect_worker(2);
}
END_TEST

/* Nobody syncs the copy: a power cut may have taken bytes of it. */
START_TEST(a_copy_that_was_spoilt_on_the_disk_is_fetched_again)
{
	char name[256];
	publish_ok(0, "ranks", "\"step\":0");
	snprintf(name, sizeof name, "ranks/%s/b.safetensors", COPY);
	if (_i == 0)
		put(name, span_text("no safetensors"));
	else
		put_shard(name, "b", 70);
	publish_ok(1, "ranks", "\"step\":1");
	expect_worker(1);
}
END_TEST

START_TEST(a_step_is_published_when_every_rank_has_put_its_part)
{
	publish_ok(0, "ranks", "\"step\":0");
	write_checkpoint(1);
	server.waits = 2;
	expect_failed(publish("--wait 0", "ranks"), ERROR_NOT_READY);
	expect_failed(publish("--wait 0", "ranks"), ERROR_NOT_READY);
	ck_assert_uint_eq(server.count, 1);
	expect_ok(publish("", "ranks"), "\"step\":1,");
	expect_worker(1);
}
END_TEST

/* Its caller saw the first call fail, and has the same weights still or newer ones. */
START_TEST(a_step_that_the_others_completed_meanwhile_is_done)
{
	publish_ok(0, "ranks", "\"step\":0");
	write_checkpoint(1);
	server.waits = 1;
	expect_failed(publish("--wait 0", "ranks"), ERROR_NOT_READY);
	run_server_complete(&server);
	if (_i == 0)
		expect_ok(publish("", "ranks"), "\"already\":true");
	publish_ok(2, "ranks", "\"step\":2");
	ck_assert_uint_eq(server.count, 3);
	expect_worker(2);
}
END_TEST

/* Its own weights come behind those. */
START_TEST(a_step_that_others_took_meanwhile_is_gone_on_from)
{
	publish_ok(0, "ranks", "\"step\":0");
	write_checkpoint(1);
	server.waits = 1;
	expect_failed(publish("--wait 0", "ranks"), ERROR_NOT_READY);
	write_checkpoint(5);
	expect_ok(publish("--epoch 1", "other"), "\"step\":1");
	publish_ok(1, "ranks", "\"step\":2");
	expect_worker(1);
}
END_TEST

START_TEST(a_step_that_others_published_is_not_taken_for_ours)
{
	publish_ok(0, "ranks", "\"step\":0");
	write_checkpoint(1);
	server.is_of_others = true;
	expect_failed(publish("", "ranks"), ERROR_STEP_DIFFERS);
	expect_failed(publish("--step 1", "ranks"), ERROR_STEP_DIFFERS);
}
END_TEST

START_TEST(a_rank_of_a_trainer_that_was_fenced_sends_nothing)
{
	publish_ok(0, "ranks", "\"step\":0");
	server.epoch++;
	web_forget_trace(server.web);
	write_checkpoint(1);
	expect_failed(publish("", "ranks"), ERROR_STALE_EPOCH);
	ck_assert_ptr_eq(strstr(web_trace(server.web), "PUT "), NULL);
	expect_ok(publish("--take-over", "ranks"), "\"step\":1");
	expect_worker(1);
}
END_TEST

static void expect_part(const char *const rank, const char *const more, const uint64_t epoch,
	const char *const file)
{
	server.waits = 1;
	expect_failed(publish_as(rank, more, "ranks"), ERROR_NOT_READY);
	ck_assert_uint_eq(server.waiting.epoch, epoch);
	ck_assert(span_equal_text(server.waiting.files[0].path, file));
}

/* The first of them opens the run; the others learn of it by the folder that they share. */
START_TEST(all_ranks_are_one_writer)
{
	write_checkpoint(0);
	expect_failed(publish_as("1/2", "--wait 0", "ranks"), ERROR_NOT_READY);
	ck_assert_str_eq(web_trace(server.web), "");
	expect_part("0/2", "--wait 0", 1, "a.safetensors");
	expect_part("1/2", "--wait 0", 1, "b.safetensors");
	expect_part("0/2", "--wait 0 --take-over", 2, "a.safetensors");
	expect_part("1/2", "--wait 0", 2, "b.safetensors");
	server.epoch = 7; /* by whoever starts the ranks */
	expect_part("0/2", "--wait 0 --epoch 7", 7, "a.safetensors");
	expect_part("1/2", "--wait 0", 7, "b.safetensors");
	expect_part("1/2", "--wait 0 --epoch 7", 7, "b.safetensors");
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
	tcase_add_test(tests, a_step_is_published_when_every_rank_has_put_its_part);
	tcase_add_loop_test(tests, a_step_that_the_others_completed_meanwhile_is_done, 0, 2);
	tcase_add_test(tests, a_step_that_others_published_is_not_taken_for_ours);
	tcase_add_test(tests, a_rank_of_a_trainer_that_was_fenced_sends_nothing);
	tcase_add_test(tests, a_step_that_others_took_meanwhile_is_gone_on_from);
	tcase_add_test(tests, all_ranks_are_one_writer);
	suite_add_tcase(suite, tests);
	return suite;
}
