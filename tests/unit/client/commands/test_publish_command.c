/* Publishers and followers against a server in memory: what a step is made of, what a failed call
 * leaves to the next one, and that a worker ends with exactly the published weights. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/local/folder_files.h"
#include "client/publish/publish_source.h"
#include "tests/unit/client/command_fixture.h"
#include "tests/unit/client/run_server.h"
#include "weights/delta/delta.h"

enum { ELEMENTS = 3000 };

static char *scratch;
static struct run_server server;
static bool is_f32; /* of the weights: BF16 otherwise */

static void set_up(void)
{
	scratch = unit_scratch_make();
	is_f32 = false;
	run_server_start(&server);
}

static void tear_down(void)
{
	run_server_stop(&server);
	unit_scratch_remove(scratch);
}

static void put(const char *name, struct span bytes)
{
	struct error err = {0};
	char *const path = folder_files_join(scratch, name);
	ck_assert_int_eq(file_make_parent(file_system(), path, 0755, &err), 0);
	ck_assert_msg(file_place(file_system(), path, bytes, 0644, &err) == 0, "%s", err.text);
	free(path);
}

/* Makes the weights of one iteration: some of them change from one iteration to the next. */
static void make_weights(unsigned iteration, struct buffer *out)
{
	char header[128];
	const int length = snprintf(header, sizeof header,
		"{\"w\":{\"dtype\":\"%s\",\"shape\":[%d],\"data_offsets\":[0,%d]}}",
		is_f32 ? "F32" : "BF16", is_f32 ? ELEMENTS / 2 : ELEMENTS, 2 * ELEMENTS);
	const uint8_t prefix[8] = {(uint8_t)length};
	uint64_t state = 1;
	buffer_init(out, 100000);
	buffer_add(out, prefix, sizeof prefix);
	buffer_add_text(out, header);
	for (unsigned i = 0; i < ELEMENTS; i++) {
		state = state * 6364136223846793005U + 1442695040888963407U;
		buffer_add_byte(out, (uint8_t)((state >> 33) + (i % 100 == 0 ? iteration : 0)));
		buffer_add_byte(out, (uint8_t)(0x3c + (state >> 60) % 2));
	}
}

static void write_weights(unsigned iteration, const char *name)
{
	struct buffer weights;
	make_weights(iteration, &weights);
	put(name, buffer_span(&weights));
	buffer_release(&weights);
}

static void write_checkpoint(unsigned iteration)
{
	write_weights(iteration, "trained/model.safetensors");
	put("trained/config.json", span_text("{\"a\": 1}"));
}

static struct command_result publish_with(const char *more, const char *state)
{
	char words[4096];
	snprintf(words, sizeof words,
		"--json --quiet --retries 0 --threads 1 --run b/r %s --state %s/%s %s/trained",
		more, scratch, state, scratch);
	return command_fixture_run(
		command_publish, COMMAND_PUBLISH, web_endpoint(server.web), words);
}

static struct command_result follow_with(const char *more, const char *into)
{
	char words[4096];
	snprintf(words, sizeof words,
		"--json --quiet --retries 0 --threads 1 --run b/r %s --into %s/%s", more, scratch,
		into);
	return command_fixture_run(command_follow, COMMAND_FOLLOW, web_endpoint(server.web), words);
}

static void expect_ok(struct command_result result, const char *said)
{
	ck_assert_msg(result.status == 0, "%s", result.err.text);
	ck_assert_msg(strstr(buffer_text(&result.output), said) != NULL,
		"\"%s\" is missing in:\n%s", said, buffer_text(&result.output));
	command_result_release(&result);
}

static void expect_failed(struct command_result result, enum error_kind kind, const char *said)
{
	ck_assert_int_eq(result.status, -1);
	ck_assert_msg(result.err.kind == kind, "%s: %s", error_kind_name(result.err.kind),
		result.err.text);
	ck_assert_msg(strstr(result.err.text, said) != NULL, "%s", result.err.text);
	command_result_release(&result);
}

static void publish_ok(unsigned iteration, const char *more, const char *said)
{
	write_checkpoint(iteration);
	expect_ok(publish_with(more, "state"), said);
}

/* Checks that the follower's `current` leads to the weights of that iteration. */
static void expect_current(const char *into, unsigned iteration)
{
	struct error err = {0};
	struct buffer held;
	struct buffer want;
	char name[64];
	snprintf(name, sizeof name, "%s/current/model.safetensors", into);
	char *const path = folder_files_join(scratch, name);
	buffer_init(&held, 100000);
	make_weights(iteration, &want);
	ck_assert_msg(file_read_all(path, &held, &err) == 0, "%s", err.text);
	ck_assert_msg(
		span_equal(buffer_span(&held), buffer_span(&want)), "not iteration %u", iteration);
	buffer_release(&held);
	buffer_release(&want);
	free(path);
}

static bool exists(const char *name)
{
	char *const path = folder_files_join(scratch, name);
	const bool found = file_exists(path);
	free(path);
	return found;
}

static unsigned count_lines(const char *begins)
{
	unsigned count = 0;
	for (const char *at = web_trace(server.web); (at = strstr(at, begins)) != NULL; at++)
		count++;
	return count;
}

START_TEST(the_first_step_is_an_anchor_and_the_next_a_delta)
{
	publish_ok(0, "--label it-0 --metadata lr=1e-6", "\"step\":0,\"label\":\"it-0\"");
	publish_ok(1, "", "\"anchor_due\":false,\"elements\":3000,\"changed_elements\":30,");
	ck_assert_uint_eq(server.count, 2);
	const struct step_message *const first = run_server_step(&server, 0);
	const struct step_message *const second = run_server_step(&server, 1);
	ck_assert(span_equal_text(first->label, "it-0") &&
		span_equal_text(first->metadata, "{\"lr\":\"1e-6\"}"));
	ck_assert(step_message_form(first, STEP_ANCHOR) != NULL &&
		step_message_form(first, STEP_DELTA) == NULL);
	ck_assert(step_message_form(second, STEP_ANCHOR) == NULL &&
		step_message_form(second, STEP_DELTA) != NULL);
	ck_assert(second->has_base && second->base_step == 0 &&
		digest128_equal(&second->base_digest, &first->digest));
	ck_assert_uint_eq(step_message_form(first, STEP_ANCHOR)->object_count, 2);
	ck_assert_uint_lt(step_form_bytes(step_message_form(second, STEP_DELTA)), ELEMENTS);
}
END_TEST

START_TEST(an_anchor_comes_when_it_is_asked_for_and_names_what_is_there)
{
	publish_ok(0, "", "\"delta_bytes\":0,\"anchor_bytes\":");
	publish_ok(1, "--anchor always", "\"step\":1");
	publish_ok(2, "--anchor never", "\"anchor_bytes\":0,");
	publish_ok(3, "--anchor 3", "\"step\":3");
	const struct step_form *const anchor =
		step_message_form(run_server_step(&server, 1), STEP_ANCHOR);
	ck_assert(anchor != NULL &&
		step_message_form(run_server_step(&server, 1), STEP_DELTA) != NULL);
	/* the unchanged file is the object of step 0 */
	ck_assert(span_equal_text(anchor->objects[0].name, "config.json"));
	ck_assert(span_equal_text(anchor->objects[0].key, "r/steps/000000/anchor/config.json"));
	ck_assert_ptr_eq(step_message_form(run_server_step(&server, 2), STEP_ANCHOR), NULL);
	ck_assert_ptr_ne(step_message_form(run_server_step(&server, 3), STEP_ANCHOR), NULL);
}
END_TEST

static struct buffer *find_object(const char *target)
{
	size_t at = 0;
	while (at < server.object_count && strcmp(server.objects[at].target, target) != 0)
		at++;
	ck_assert_uint_lt(at, server.object_count);
	return &server.objects[at].bytes;
}

/* Empties the object and returns its buffer. */
static struct buffer *lose_object(const char *target)
{
	buffer_reset(find_object(target));
	return find_object(target);
}

START_TEST(a_file_that_the_server_has_lost_is_sent_again)
{
	publish_ok(0, "", "\"step\":0");
	lose_object("/b/r/steps/000000/anchor/config.json");
	publish_ok(1, "--anchor always", "\"step\":1");
	const struct step_form *const anchor =
		step_message_form(run_server_step(&server, 1), STEP_ANCHOR);
	ck_assert(span_equal_text(anchor->objects[0].key, "r/steps/000001/anchor/config.json"));
	expect_ok(follow_with("--once", "worker"), "");
	expect_current("worker", 1);
}
END_TEST

START_TEST(a_refused_step_does_not_move_the_baseline)
{
	publish_ok(0, "", "\"step\":0");
	server.refusals = 1;
	write_checkpoint(1);
	expect_failed(publish_with("", "state"), ERROR_NO_SPACE, "publishing step 1 of run b/r");
	ck_assert_uint_eq(server.count, 1);
	web_forget_trace(server.web);
	expect_ok(publish_with("", "state"), "\"step\":1,");
	ck_assert_uint_eq(count_lines("PUT /b/"), 0); /* it was sent before */
	expect_ok(follow_with("--once", "worker"), "");
	expect_current("worker", 1);
}
END_TEST

/* There is no committed step, so there is nothing to fetch again. */
START_TEST(a_server_that_blames_the_base_of_a_first_step_is_refused)
{
	server.refusals = 1;
	server.refusal = "wrong_base";
	write_checkpoint(0);
	expect_failed(publish_with("", "state"), ERROR_WRONG_BASE, "publishing step 0 of run b/r");
	expect_ok(publish_with("", "state"), "\"step\":0,");
}
END_TEST

START_TEST(an_upload_that_broke_off_goes_on_with_what_is_missing)
{
	server.full = 1;
	write_checkpoint(0);
	expect_failed(publish_with("--parallel 1", "state"), ERROR_NO_SPACE,
		"uploading step 0 of run b/r");
	web_forget_trace(server.web);
	expect_ok(publish_with("--parallel 1", "state"), "\"step\":0,");
	ck_assert_uint_eq(count_lines("PUT /b/r/steps/000000/anchor/config.json"), 0);
	ck_assert_uint_eq(count_lines("PUT /b/r/steps/000000/anchor/model.safetensors"), 1);
	expect_ok(follow_with("--once", "worker"), "");
	expect_current("worker", 0);
}
END_TEST

/* Uploads and delta of the failed call were of the other weights. */
START_TEST(other_weights_than_those_that_were_refused_are_the_step)
{
	publish_ok(0, "", "\"step\":0");
	server.refusals = 1;
	write_checkpoint(1);
	expect_failed(publish_with("", "state"), ERROR_NO_SPACE, "");
	web_forget_trace(server.web);
	publish_ok(2, "", "\"step\":1,");
	ck_assert_uint_eq(count_lines("PUT /b/"), 1);
	expect_ok(follow_with("--once", "worker"), "");
	expect_current("worker", 2);
}
END_TEST

/* The format that the downloaded delta has, whatever the step says. */
static enum delta_format sent_format(uint64_t step)
{
	struct error err = {0};
	struct delta_summary summary;
	char target[256];
	const struct step_form *const form =
		step_message_form(run_server_step(&server, step), STEP_DELTA);
	const struct span key = form->objects[0].key;
	snprintf(target, sizeof target, "/b/%.*s", (int)key.len, (const char *)key.data);
	put("taken/delta.safetensors", buffer_span(find_object(target)));
	char *const path = folder_files_join(scratch, "taken");
	ck_assert_msg(delta_inspect(path, &summary, &err) == 0, "%s", err.text);
	free(path);
	return summary.format;
}

/* The state folder has a delta of the same weights, in another format. */
START_TEST(a_delta_in_another_format_is_made_anew)
{
	publish_ok(0, "", "\"step\":0");
	server.refusals = 1;
	write_checkpoint(1);
	expect_failed(publish_with("", "state"), ERROR_NO_SPACE, "");
	expect_ok(publish_with("--format trl-gap", "state"), "\"step\":1,");
	ck_assert(span_equal_text(
		step_message_form(run_server_step(&server, 1), STEP_DELTA)->format, "trl-gap"));
	ck_assert_int_eq(sent_format(1), DELTA_TRL_GAP);
	expect_ok(follow_with("--once", "worker"), "");
	expect_current("worker", 1);
}
END_TEST

START_TEST(what_a_format_cannot_hold_comes_whole)
{
	is_f32 = true;
	publish_ok(0, "", "\"step\":0");
	publish_ok(1, "--format trl-gap", "\"step\":1");
	ck_assert_ptr_eq(step_message_form(run_server_step(&server, 1), STEP_DELTA), NULL);
	expect_ok(follow_with("--once", "worker"), "");
	expect_current("worker", 1);
}
END_TEST

START_TEST(a_step_whose_answer_was_lost_is_not_published_twice)
{
	publish_ok(0, "", "\"step\":0");
	server.cuts = 100;
	write_checkpoint(1);
	expect_failed(publish_with("", "state"), ERROR_UPSTREAM, "");
	server.cuts = 0;
	expect_ok(publish_with("", "state"), "\"already\":true");
	ck_assert_uint_eq(server.count, 2);
	publish_ok(2, "", "\"step\":2,");
	expect_ok(follow_with("--once", "worker"), "");
	expect_current("worker", 2);
}
END_TEST

START_TEST(a_step_that_is_named_is_that_step_or_none)
{
	publish_ok(0, "--step 0", "\"step\":0,");
	expect_ok(publish_with("--step 0", "state"), "\"already\":true");
	write_checkpoint(1);
	expect_failed(publish_with("--step 0", "state"), ERROR_STEP_DIFFERS, "step 0 of run b/r");
	expect_failed(publish_with("--step 2", "state"), ERROR_HEAD_MOVED,
		"the next step of run b/r is 1");
	publish_ok(1, "--step 1", "\"step\":1,");
	ck_assert_uint_eq(server.count, 2);
}
END_TEST

/* A job script calls each rank again after a failure. Both checkpoints have the same names and
 * sizes. */
START_TEST(a_rank_that_repeats_its_step_is_told_when_it_has_other_weights)
{
	static const char words[] = "--rank 0/1 --epoch 1 --step 0";
	publish_ok(0, "", "\"step\":0");
	expect_ok(publish_with(words, "ranks"), "\"already\":true");
	write_checkpoint(1);
	expect_failed(publish_with(words, "ranks"), ERROR_STEP_DIFFERS, "step 0 of run b/r");
	ck_assert_uint_eq(server.count, 1);
}
END_TEST

START_TEST(a_second_trainer_fences_the_first)
{
	publish_ok(0, "", "\"step\":0");
	write_checkpoint(1);
	expect_failed(
		publish_with("--keep-steps 8", "other"), ERROR_STALE_EPOCH, "add --take-over");
	ck_assert_uint_eq(server.count, 1);
	/* with the head as its baseline */
	expect_ok(publish_with("--keep-steps 8 --take-over", "other"), "\"step\":1,");
	ck_assert_ptr_ne(step_message_form(run_server_step(&server, 1), STEP_DELTA), NULL);
	write_checkpoint(2);
	expect_failed(publish_with("", "state"), ERROR_STALE_EPOCH, "--take-over");
	expect_failed(publish_with("", "third"), ERROR_STALE_EPOCH,
		"run b/r is at step 1 and has another publisher");
	ck_assert_uint_eq(server.count, 2);
	expect_ok(publish_with("--take-over", "state"), "\"step\":2,");
	expect_failed(publish_with("", "other"), ERROR_STALE_EPOCH, "--take-over");
	expect_ok(follow_with("--once", "worker"), "");
	expect_current("worker", 2);
}
END_TEST

/* One step was refused, and another trainer published a step with the same number. */
START_TEST(the_step_of_another_trainer_is_never_taken_for_the_one_that_was_refused)
{
	publish_ok(0, "", "\"step\":0");
	server.refusals = 1;
	write_checkpoint(1);
	expect_failed(publish_with("", "state"), ERROR_NO_SPACE, "");
	write_checkpoint(5);
	expect_ok(publish_with("--take-over", "other"), "\"step\":1,");
	write_checkpoint(1);
	expect_ok(publish_with("--take-over", "state"), "\"step\":2,");
	expect_ok(follow_with("--once", "worker"), "");
	expect_current("worker", 1);
}
END_TEST

/* For example a server that was restored from a backup. No publisher continues there unasked. */
START_TEST(a_run_that_went_back_is_gone_on_with_on_demand_alone)
{
	publish_ok(0, "", "\"step\":0");
	publish_ok(1, "", "\"step\":1");
	server.count = (size_t)_i;
	write_checkpoint(2);
	expect_failed(publish_with("", "state"), ERROR_HEAD_MOVED, "--take-over");
	ck_assert_uint_eq(server.count, (size_t)_i);
	expect_ok(publish_with("--take-over", "state"), _i == 0 ? "\"step\":0" : "\"step\":1");
	expect_ok(follow_with("--once", "worker"), "");
	expect_current("worker", 2);
}
END_TEST

/* Baseline and published steps of the state folder belong to the run that is gone. */
START_TEST(a_run_that_others_made_anew_is_taken_over_where_it_is)
{
	for (unsigned i = 0; i < 3; i++)
		publish_ok(i, "", "\"published\"");
	server.count = 0;
	write_checkpoint(5);
	expect_ok(publish_with("", "other"), "\"step\":0");
	publish_ok(6, "--take-over", "\"step\":1");
	ck_assert_ptr_ne(step_message_form(run_server_step(&server, 1), STEP_DELTA), NULL);
	expect_ok(follow_with("--once", "worker"), "");
	expect_current("worker", 6);
}
END_TEST

START_TEST(a_spoilt_copy_is_no_way_to_the_step_of_another_trainer)
{
	struct buffer spoilt;
	make_weights(7, &spoilt);
	publish_ok(0, "", "\"step\":0");
	write_checkpoint(1);
	expect_ok(publish_with("--take-over", "other"), "\"step\":1,");
	put("state/step-000000/checkpoint/model.safetensors", buffer_span(&spoilt));
	publish_ok(2, "--take-over", "\"step\":2,");
	expect_ok(follow_with("--once", "worker"), "");
	expect_current("worker", 2);
	buffer_release(&spoilt);
}
END_TEST

/* S3 clients cannot make one of a single letter. */
START_TEST(a_bucket_that_cannot_be_made_is_told_so)
{
	server.has_bucket = false;
	write_checkpoint(0);
	expect_failed(publish_with("", "state"), ERROR_NO_BUCKET,
		"none can be made of this name: it must have 3 to 63 bytes");
	expect_failed(publish_with("--create-bucket", "state"), ERROR_BAD_NAME,
		"none can be made of this name");
	expect_failed(publish_with("--create-bucket --rank 0/1", "state"), ERROR_BAD_NAME,
		"none can be made of this name");
	ck_assert(!exists("state"));
	server.has_bucket = true; /* a Hub client has made it */
	expect_ok(publish_with("", "state"), "\"step\":0,");
	expect_ok(publish_with("--keep-steps 5 --step 0", "state"), "\"already\":true");
	ck_assert_uint_eq(server.keep_steps, 5);
}
END_TEST

START_TEST(a_run_may_keep_every_step)
{
	publish_ok(0, "--keep-steps 0", "\"already\":false,");
	ck_assert_uint_eq(server.keep_steps, 0);
	publish_ok(1, "--keep-steps 9", "\"step\":1,"); /* a later call may change it */
	ck_assert_uint_eq(server.keep_steps, 9);
	publish_ok(2, "", "\"step\":2,");
	ck_assert_uint_eq(server.keep_steps, 9);
}
END_TEST

START_TEST(what_is_no_checkpoint_fences_nobody_off)
{
	put("trained/model.safetensors", span_text("no safetensors"));
	ck_assert_int_eq(publish_with("", "state").status, -1);
	ck_assert_uint_eq(count_lines("POST "), 0);
	ck_assert(!exists("state"));
}
END_TEST

/* Whatever happened to the copy of the step before, a delta is made against what workers hold. */
START_TEST(a_copy_that_was_spoilt_on_the_disk_is_fetched_again)
{
	struct buffer other;
	make_weights(7, &other);
	publish_ok(0, "", "\"step\":0");
	put("state/step-000000/checkpoint/model.safetensors",
		_i == 0 ? buffer_span(&other) : span_text("no safetensors"));
	publish_ok(1, "", "\"step\":1");
	ck_assert_ptr_ne(step_message_form(run_server_step(&server, 1), STEP_DELTA), NULL);
	expect_ok(follow_with("--once", "worker"), "");
	expect_current("worker", 1);
	buffer_release(&other);
}
END_TEST

/* On a file system that shares bytes, every step has a copy at no cost. */
static bool shares_bytes(void)
{
	struct error err = {0};
	char *const from = folder_files_join(scratch, "shared-from");
	char *const to = folder_files_join(scratch, "shared-to");
	put("shared-from", span_text("bytes"));
	const int result = file_reflink(file_system(), from, to, &err);
	ck_assert_int_ge(result, 0);
	ck_assert_int_eq(file_exists(to), result == 0);
	free(from);
	free(to);
	return result == 0;
}

/* A trainer that always writes into the same place: each delta is made against the copy and the
 * deltas behind it, until there are many. */
START_TEST(a_copy_is_made_once_in_eight_steps)
{
	if (shares_bytes())
		return;
	unsigned copies = 0;
	for (unsigned i = 0; i < 20; i++) {
		char name[64];
		publish_ok(i, "", "\"published\"");
		snprintf(name, sizeof name, "state/step-%06u/checkpoint/model.safetensors", i);
		copies += exists(name);
		snprintf(name, sizeof name, "state/step-%06u/delta/delta.safetensors", i);
		ck_assert_int_eq(exists(name), i > 0 && i % 8 != 0);
	}
	ck_assert_uint_eq(copies, 3);
	ck_assert(!exists("state/step-000008") && exists("state/step-000016/checkpoint") &&
		exists("state/step-000017/delta"));
	ck_assert_ptr_eq(step_message_form(run_server_step(&server, 19), STEP_ANCHOR), NULL);
	expect_ok(follow_with("--once", "worker"), "");
	expect_current("worker", 19);
}
END_TEST

static struct command_result publish_file(const char *name, const char *more)
{
	char words[4096];
	snprintf(words, sizeof words,
		"--json --quiet --retries 0 --threads 1 --run b/r %s --state %s/state %s/%s", more,
		scratch, scratch, name);
	return command_fixture_run(
		command_publish, COMMAND_PUBLISH, web_endpoint(server.web), words);
}

/* A trainer that writes each step into a place of its own, and then keeps it or removes it. */
START_TEST(what_the_trainer_left_alone_is_the_baseline)
{
	if (shares_bytes())
		return;
	write_weights(0, "it-0.safetensors");
	write_weights(1, "it-1.safetensors");
	write_weights(2, "it-2.safetensors");
	expect_ok(publish_file("it-0.safetensors", ""), "\"step\":0");
	put("state/step-000000/checkpoint/model.safetensors", span_text("spoilt"));
	web_forget_trace(server.web);
	expect_ok(publish_file("it-1.safetensors", ""), "\"step\":1");
	ck_assert_uint_eq(count_lines("GET /v1/runs/b/r/objects/r/steps/000000/anchor"), 0);
	ck_assert_ptr_ne(step_message_form(run_server_step(&server, 1), STEP_DELTA), NULL);
	write_weights(9, "it-1.safetensors");
	web_forget_trace(server.web);
	expect_ok(publish_file("it-2.safetensors", ""), "\"step\":2");
	ck_assert_uint_ge(count_lines("GET /v1/runs/b/r/objects/r/steps/000000/anchor"), 1);
	expect_ok(follow_with("--once", "worker"), "");
	expect_current("worker", 2);
}
END_TEST

/* The digest decides: a file that looks like the published one but holds other weights is not a
 * baseline. */
START_TEST(what_only_looks_like_the_baseline_is_none)
{
	if (shares_bytes())
		return;
	struct publish_state state;
	struct publish_source other;
	struct error err = {0};
	publish_ok(0, "", "\"step\":0");
	char *const folder = folder_files_join(scratch, "state");
	const struct publish_state_params params = {.files = file_system(),
		.folder = folder,
		.endpoint = web_endpoint(server.web),
		.run = "b/r"};
	ck_assert_int_eq(publish_state_open(&state, &params, &err), 0);
	write_weights(9, "other.safetensors");
	char *const path = folder_files_join(scratch, "other.safetensors");
	ck_assert_int_eq(publish_source_take(&other, &state, path, NULL, &err), 0);
	publish_source_note(&other, &state);
	publish_source_release(&other);
	publish_state_close(&state);
	free(path);
	free(folder);
	web_forget_trace(server.web);
	publish_ok(1, "", "\"step\":1");
	ck_assert_uint_eq(count_lines("GET /v1/runs/b/r/objects/r/steps/000000/anchor"), 0);
	expect_ok(follow_with("--once", "worker"), "");
	expect_current("worker", 1);
}
END_TEST

static const char *const spoilt_deltas[] = {"spoilt", "", NULL};

START_TEST(a_delta_that_was_spoilt_on_the_disk_is_gone_around)
{
	if (shares_bytes())
		return;
	struct buffer bytes;
	struct error err = {0};
	static const char NAME[] = "state/step-000001/delta/delta.safetensors";
	publish_ok(0, "", "\"step\":0");
	publish_ok(1, "", "\"step\":1");
	char *const path = folder_files_join(scratch, NAME);
	buffer_init(&bytes, 100000);
	ck_assert_int_eq(file_read_all(path, &bytes, &err), 0);
	bytes.data[bytes.len - 1] ^= 1;
	put(NAME, spoilt_deltas[_i] != NULL ? span_text(spoilt_deltas[_i]) : buffer_span(&bytes));
	publish_ok(2, "", "\"step\":2");
	ck_assert_ptr_ne(step_message_form(run_server_step(&server, 2), STEP_DELTA), NULL);
	expect_ok(follow_with("--once", "worker"), "");
	expect_current("worker", 2);
	buffer_release(&bytes);
	free(path);
}
END_TEST

START_TEST(a_worker_takes_the_deltas_and_tells_where_it_is)
{
	publish_ok(0, "", "\"step\":0");
	expect_ok(follow_with("--once --replica w1", "worker"), "\"step\":0");
	expect_current("worker", 0);
	publish_ok(1, "", "\"step\":1");
	publish_ok(2, "", "\"step\":2");
	web_forget_trace(server.web);
	expect_ok(follow_with("--step 2 --replica w1", "worker"), "\"step\":2");
	expect_current("worker", 2);
	ck_assert_uint_eq(count_lines("GET /v1/runs/b/r/objects/r/steps/000000"), 0);
	ck_assert_uint_eq(count_lines("/delta/delta.safetensors"), 2);
	ck_assert_uint_ge(
		count_lines("PUT /v1/runs/b/r/replicas/w1 {\"state\":\"ready\",\"step\":2"), 1);
	ck_assert_uint_eq(count_lines("DELETE /v1/runs/b/r/replicas/w1"), 1);
	web_forget_trace(server.web);
	expect_ok(follow_with("--once --replica w1", "worker"), "");
	ck_assert_uint_eq(count_lines("/objects/"), 0);
	/* no worker of the fleet */
	ck_assert_uint_eq(count_lines("PUT /v1/runs/b/r/replicas/"), 0);
}
END_TEST

START_TEST(a_delta_that_stays_damaged_makes_it_go_by_an_anchor)
{
	publish_ok(0, "", "\"step\":0");
	expect_ok(follow_with("--once", "worker"), "");
	publish_ok(1, "--anchor always", "\"step\":1");
	server.flips = 2;
	expect_ok(follow_with("--once", "worker"), "from_anchor");
	expect_current("worker", 1);
}
END_TEST

/* Engines load more than the weights: a step becomes current only if all its files are as the
 * publisher had them. */
START_TEST(an_anchor_that_is_not_the_step_is_refused)
{
	static const char other[] = "{\"a\": 2}";
	put("trained/tokenizer.json", span_text("{}"));
	publish_ok(0, "", "\"step\":0");
	struct step_form *const anchor = &server.steps[0].forms[0];
	ck_assert(span_equal_text(anchor->objects[0].name, "config.json"));
	ck_assert(span_equal_text(anchor->objects[2].name, "tokenizer.json"));
	if (_i == 0) {
		anchor->object_count--;
	} else if (_i == 1) {
		anchor->objects[0].digest = xxh3_128(span_text(other));
		buffer_add_text(lose_object("/b/r/steps/000000/anchor/config.json"), other);
	} else {
		server.steps[0].digest.bytes[0] ^= 1;
	}
	expect_failed(follow_with("--once", "worker"), ERROR_DIGEST_MISMATCH, "");
	char *const current = folder_files_join(scratch, "worker/current");
	ck_assert(!file_exists(current));
	free(current);
}
END_TEST

START_TEST(downloads_that_lead_nowhere_any_more_are_removed)
{
	publish_ok(0, "", "\"step\":0");
	expect_ok(follow_with("--once", "worker"), "");
	put("worker/incoming/000007-anchor-000000-0123456789ab/files/model.safetensors",
		span_text("half"));
	publish_ok(1, "", "\"step\":1");
	expect_ok(follow_with("--once", "worker"), "");
	char *const left =
		folder_files_join(scratch, "worker/incoming/000007-anchor-000000-0123456789ab");
	ck_assert(!file_exists(left));
	free(left);
}
END_TEST

START_TEST(weights_that_were_spoilt_on_the_disk_are_not_built_upon)
{
	publish_ok(0, "", "\"step\":0");
	expect_ok(follow_with("--once", "worker"), "");
	struct buffer other;
	make_weights(7, &other);
	put("worker/generations/000000/model.safetensors", buffer_span(&other));
	buffer_release(&other);
	publish_ok(1, "", "\"step\":1");
	expect_ok(follow_with("--once", "worker"), "damaged");
	expect_current("worker", 1);
}
END_TEST

static void expect_text(const char *name, const char *text)
{
	struct error err = {0};
	struct buffer bytes;
	char *const path = folder_files_join(scratch, name);
	buffer_init(&bytes, 1000);
	ck_assert_msg(file_read_all(path, &bytes, &err) == 0, "%s", err.text);
	ck_assert_str_eq(buffer_text(&bytes), text);
	buffer_release(&bytes);
	free(path);
}

/* A delta does not contain files that did not change. */
START_TEST(a_config_that_was_spoilt_on_the_disk_is_not_passed_on)
{
	publish_ok(0, "", "\"step\":0");
	expect_ok(follow_with("--once", "worker"), "");
	put("worker/generations/000000/config.json", span_text("{\"a\": 2}"));
	publish_ok(1, _i == 0 ? "" : "--format trl-gap", "\"step\":1");
	expect_ok(follow_with("--once", "worker"), "from_anchor");
	expect_text("worker/current/config.json", "{\"a\": 1}");
	expect_current("worker", 1);
}
END_TEST

START_TEST(the_command_runs_once_for_each_step)
{
	char words[1024];
	char *const path = folder_files_join(scratch, "said");
	char *const hook = folder_files_join(scratch, "hook");
	snprintf(words, sizeof words,
		"echo \"$DELTABUCKET_STEP after ${DELTABUCKET_PREVIOUS_STEP:-nothing}\" >>%s\n",
		path);
	put("hook", span_text(words));
	snprintf(words, sizeof words, "--once --exec .\t%s", hook); /* words end at spaces here */
	publish_ok(0, "", "\"step\":0");
	expect_ok(follow_with(words, "worker"), "");
	expect_ok(follow_with(words, "worker"), "");
	publish_ok(1, "", "\"step\":1");
	expect_ok(follow_with(words, "worker"), "");
	expect_text("said", "0 after nothing\n1 after 0\n");
	free(hook);
	free(path);
}
END_TEST

/* A trainer that waits for all workers must not count one whose engine did not load the step. */
START_TEST(a_worker_whose_command_fails_is_not_ready)
{
	publish_ok(0, "", "\"step\":0");
	expect_failed(
		follow_with("--step 0 --replica w1 --exec false", "worker"), ERROR_IO, "status 1");
	ck_assert_uint_eq(count_lines("PUT /v1/runs/b/r/replicas/w1 {\"state\":\"ready\""), 0);
	ck_assert_uint_ge(count_lines("PUT /v1/runs/b/r/replicas/w1 {\"state\":\"error\""), 1);
}
END_TEST

/* The copied folder is what a kill during the command leaves: there the command runs once more. */
START_TEST(a_command_that_was_killed_with_its_worker_runs_again)
{
	char script[2000];
	char words[2000];
	snprintf(script, sizeof script,
		"#!/bin/sh\necho ran >> %s/runs\n[ -e %s/killed ] || cp -a %s/worker %s/killed\n",
		scratch, scratch, scratch, scratch);
	put("script", span_text(script));
	snprintf(words, sizeof words, "%s/script", scratch);
	ck_assert_int_eq(chmod(words, 0755), 0);
	snprintf(words, sizeof words, "--once --exec %s/script", scratch);
	publish_ok(0, "", "\"step\":0");
	expect_ok(follow_with(words, "worker"), "");
	expect_ok(follow_with(words, "killed"), "");
	expect_ok(follow_with(words, "killed"), "");
	snprintf(words, sizeof words, "[ $(wc -l < %s/runs) = 2 ]", scratch);
	ck_assert_int_eq(system(words), 0);
}
END_TEST

START_TEST(weights_that_did_not_change_are_a_step_of_their_own)
{
	publish_ok(0, "", "\"step\":0");
	publish_ok(0, "", "\"step\":1");
	publish_ok(0, "--step 1", "\"step\":1");
	ck_assert_uint_eq(server.count, 2);
}
END_TEST

START_TEST(a_step_that_is_asked_for_is_the_one_that_is_held)
{
	for (unsigned i = 0; i < 3; i++)
		publish_ok(i, "", "\"published\"");
	expect_ok(follow_with("--step 1", "worker"), "\"step\":1");
	expect_current("worker", 1);
}
END_TEST

/* Retention is not a failure of the worker: it asks for another path, but not forever. */
START_TEST(a_delta_that_went_meanwhile_is_gone_around)
{
	publish_ok(0, "", "\"step\":0");
	expect_ok(follow_with("--once", "worker"), "");
	publish_ok(1, "", "\"step\":1");
	server.lost = 1;
	expect_ok(follow_with("--once", "worker"), "\"retrying\"");
	expect_current("worker", 1);
	publish_ok(2, "", "\"step\":2");
	server.lost = 1000;
	expect_failed(follow_with("--once", "worker"), ERROR_NO_KEY, "");
	expect_current("worker", 1);
}
END_TEST

START_TEST(the_first_step_is_waited_for)
{
	publish_ok(0, "", "\"step\":0");
	server.late = 2;
	expect_ok(follow_with("--once --wait 30", "worker"), "\"waiting\"");
	expect_current("worker", 0);
	server.late = 1;
	expect_failed(follow_with("--once", "other"), ERROR_NOT_READY, "");
}
END_TEST

START_TEST(a_run_without_steps_is_waited_for_in_vain)
{
	expect_failed(follow_with("--once", "worker"), ERROR_NO_RUN, "");
	char *const current = folder_files_join(scratch, "worker/current");
	ck_assert(!file_exists(current));
	free(current);
}
END_TEST

Suite *test_publish_command_suite(void);

Suite *test_publish_command_suite(void)
{
	Suite *const suite = suite_create("publish_command");
	TCase *const tests = tcase_create("publish_command");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, the_first_step_is_an_anchor_and_the_next_a_delta);
	tcase_add_test(tests, an_anchor_comes_when_it_is_asked_for_and_names_what_is_there);
	tcase_add_test(tests, a_file_that_the_server_has_lost_is_sent_again);
	tcase_add_test(tests, a_refused_step_does_not_move_the_baseline);
	tcase_add_test(tests, a_server_that_blames_the_base_of_a_first_step_is_refused);
	tcase_add_test(tests, an_upload_that_broke_off_goes_on_with_what_is_missing);
	tcase_add_test(tests, other_weights_than_those_that_were_refused_are_the_step);
	tcase_add_test(tests, a_delta_in_another_format_is_made_anew);
	tcase_add_test(tests, what_a_format_cannot_hold_comes_whole);
	tcase_add_test(tests, a_step_whose_answer_was_lost_is_not_published_twice);
	tcase_add_test(tests, a_step_that_is_named_is_that_step_or_none);
	tcase_add_test(tests, a_rank_that_repeats_its_step_is_told_when_it_has_other_weights);
	tcase_add_test(tests, a_second_trainer_fences_the_first);
	tcase_add_test(
		tests, the_step_of_another_trainer_is_never_taken_for_the_one_that_was_refused);
	tcase_add_loop_test(tests, a_run_that_went_back_is_gone_on_with_on_demand_alone, 0, 2);
	tcase_add_test(tests, a_run_that_others_made_anew_is_taken_over_where_it_is);
	tcase_add_test(tests, a_spoilt_copy_is_no_way_to_the_step_of_another_trainer);
	tcase_add_test(tests, a_bucket_that_cannot_be_made_is_told_so);
	tcase_add_test(tests, a_run_may_keep_every_step);
	tcase_add_test(tests, what_is_no_checkpoint_fences_nobody_off);
	tcase_add_loop_test(tests, a_copy_that_was_spoilt_on_the_disk_is_fetched_again, 0, 2);
	tcase_add_test(tests, a_copy_is_made_once_in_eight_steps);
	tcase_add_test(tests, what_the_trainer_left_alone_is_the_baseline);
	tcase_add_test(tests, what_only_looks_like_the_baseline_is_none);
	tcase_add_loop_test(tests, a_delta_that_was_spoilt_on_the_disk_is_gone_around, 0, 3);
	tcase_add_test(tests, a_worker_takes_the_deltas_and_tells_where_it_is);
	tcase_add_test(tests, a_delta_that_stays_damaged_makes_it_go_by_an_anchor);
	tcase_add_loop_test(tests, an_anchor_that_is_not_the_step_is_refused, 0, 3);
	tcase_add_test(tests, downloads_that_lead_nowhere_any_more_are_removed);
	tcase_add_test(tests, weights_that_were_spoilt_on_the_disk_are_not_built_upon);
	tcase_add_loop_test(tests, a_config_that_was_spoilt_on_the_disk_is_not_passed_on, 0, 2);
	tcase_add_test(tests, the_command_runs_once_for_each_step);
	tcase_add_test(tests, a_worker_whose_command_fails_is_not_ready);
	tcase_add_test(tests, a_command_that_was_killed_with_its_worker_runs_again);
	tcase_add_test(tests, weights_that_did_not_change_are_a_step_of_their_own);
	tcase_add_test(tests, a_step_that_is_asked_for_is_the_one_that_is_held);
	tcase_add_test(tests, a_delta_that_went_meanwhile_is_gone_around);
	tcase_add_test(tests, the_first_step_is_waited_for);
	tcase_add_test(tests, a_run_without_steps_is_waited_for_in_vain);
	suite_add_tcase(suite, tests);
	return suite;
}
