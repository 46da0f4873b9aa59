#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "client/local/folder_files.h"
#include "client/publish/publish_state.h"

static const char ENDPOINT[] = "https://host:9000";
static char *scratch;
static char *folder;

static void set_up(void)
{
	scratch = unit_scratch_make();
	folder = folder_files_join(scratch, "state");
}

static void tear_down(void)
{
	free(folder);
	unit_scratch_remove(scratch);
}

static int try_open(
	struct publish_state *state, const char *endpoint, const char *run, struct error *err)
{
	const struct publish_state_params params = {
		.files = file_system(), .folder = folder, .endpoint = endpoint, .run = run};
	return publish_state_open(state, &params, err);
}

static void open_state(struct publish_state *state)
{
	struct error err = {0};
	ck_assert_msg(try_open(state, ENDPOINT, "b/r", &err) == 0, "%s", err.text);
}

static void put(const char *path, const char *text)
{
	struct error err = {0};
	ck_assert_int_eq(file_make_parent(file_system(), path, 0755, &err), 0);
	ck_assert_int_eq(file_publish(file_system(), path, span_text(text), 0600, &err), 0);
}

static struct publish_mark mark(uint64_t step, uint8_t seed)
{
	struct publish_mark made = {.step = step};
	memset(made.digest.bytes, seed, sizeof made.digest.bytes);
	memset(made.content.bytes, seed + 1, sizeof made.content.bytes);
	return made;
}

/* Does what publisher.c does: makes the folder first, and then names it in the state. */
static void make_pending(struct publish_state *state, uint64_t step)
{
	struct error err = {0};
	char *const file = publish_state_path(state, step, "checkpoint/model.safetensors");
	put(file, "weights");
	free(file);
	state->pending = mark(step, (uint8_t)step);
	state->has_pending = true;
	ck_assert_int_eq(publish_state_save(state, &err), 0);
}

static bool has_step(const struct publish_state *state, uint64_t step, const char *name)
{
	char *const path = publish_state_path(state, step, name);
	const bool exists = file_exists(path);
	free(path);
	return exists;
}

START_TEST(a_new_folder_knows_nothing)
{
	struct publish_state state;
	open_state(&state);
	ck_assert(!state.has_epoch);
	ck_assert(!state.has_committed);
	ck_assert(!state.has_pending);
	publish_state_close(&state);
	publish_state_close(&state);
}
END_TEST

START_TEST(everything_is_remembered)
{
	struct publish_state state;
	struct error err = {0};
	open_state(&state);
	state.has_epoch = true;
	state.epoch = 12;
	make_pending(&state, 4);
	ck_assert_int_eq(publish_state_commit(&state, true, &err), 0);
	make_pending(&state, 5);
	ck_assert_int_eq(publish_state_commit(&state, false, &err), 0);
	make_pending(&state, 6);
	publish_state_close(&state);

	open_state(&state);
	const struct publish_mark committed = mark(5, 5);
	const struct publish_mark pending = mark(6, 6);
	ck_assert(state.has_epoch);
	ck_assert_uint_eq(state.epoch, 12);
	ck_assert(state.has_committed);
	ck_assert_mem_eq(&state.committed, &committed, sizeof committed);
	ck_assert(state.has_pending);
	ck_assert_mem_eq(&state.pending, &pending, sizeof pending);
	ck_assert(state.has_anchor);
	ck_assert_uint_eq(state.anchor_step, 4);
	ck_assert(!has_step(&state, 4, ""));
	ck_assert(has_step(&state, 5, "checkpoint/model.safetensors"));
	ck_assert(has_step(&state, 6, "checkpoint/model.safetensors"));
	publish_state_close(&state);
}
END_TEST

START_TEST(committing_keeps_the_checkpoint_only)
{
	struct publish_state state;
	struct error err = {0};
	struct buffer sent;
	open_state(&state);
	make_pending(&state, 0);
	char *const delta = publish_state_path(&state, 0, "delta/delta.safetensors");
	put(delta, "delta");
	free(delta);
	ck_assert_int_eq(publish_state_add_sent(&state, "/b/one", &err), 0);
	ck_assert_int_eq(publish_state_add_sent(&state, "/b/two", &err), 0);
	ck_assert_int_eq(publish_state_read_sent(&state, &sent, &err), 0);
	ck_assert_str_eq(buffer_text(&sent), "/b/one\n/b/two\n");
	buffer_release(&sent);
	ck_assert_int_eq(publish_state_commit(&state, false, &err), 0);
	ck_assert(!has_step(&state, 0, "delta"));
	ck_assert(!has_step(&state, 0, "sent"));
	ck_assert(has_step(&state, 0, "checkpoint/model.safetensors"));
	publish_state_close(&state);
}
END_TEST

/* Does what publisher.c does when the checkpoint was not copied. */
static void commit_delta(struct publish_state *state, uint64_t step)
{
	struct error err = {0};
	const struct publish_mark wanted = mark(step, (uint8_t)step);
	ck_assert_int_eq(publish_state_set_pending(state, &wanted, &err), 0);
	char *const delta = publish_state_path(state, step, "delta/delta.safetensors");
	put(delta, "delta");
	free(delta);
	ck_assert_int_eq(publish_state_commit(state, false, &err), 0);
}

START_TEST(deltas_without_copies_stay_behind_the_base)
{
	struct publish_state state;
	struct error err = {0};
	open_state(&state);
	make_pending(&state, 4);
	ck_assert_int_eq(publish_state_commit(&state, true, &err), 0);
	commit_delta(&state, 5);
	commit_delta(&state, 6);
	publish_state_close(&state);
	open_state(&state);
	ck_assert(state.has_base && state.base.step == 4 && state.committed.step == 6);
	ck_assert(has_step(&state, 4, "checkpoint") && has_step(&state, 5, "delta") &&
		has_step(&state, 6, "delta"));
	char *const fresh = publish_state_new_path(&state);
	char *const file = folder_files_join(fresh, "model.safetensors");
	put(file, "weights");
	ck_assert_int_eq(publish_state_set_base(&state, &err), 0);
	free(file);
	free(fresh);
	publish_state_close(&state);
	open_state(&state);
	ck_assert(state.has_base && state.base.step == 6);
	ck_assert(has_step(&state, 6, "checkpoint/model.safetensors") &&
		!has_step(&state, 6, "delta"));
	ck_assert(!has_step(&state, 4, "") && !has_step(&state, 5, ""));
	publish_state_close(&state);
}
END_TEST

/* The step has neither a copy nor a delta: its anchor was sent from where the trainer has it. */
START_TEST(a_step_that_left_nothing_is_no_base)
{
	struct publish_state state;
	struct error err = {0};
	open_state(&state);
	make_pending(&state, 0);
	ck_assert_int_eq(publish_state_commit(&state, true, &err), 0);
	const struct publish_mark wanted = mark(1, 1);
	ck_assert_int_eq(publish_state_set_pending(&state, &wanted, &err), 0);
	ck_assert_int_eq(publish_state_commit(&state, true, &err), 0);
	publish_state_close(&state);
	open_state(&state);
	ck_assert(state.has_committed && state.committed.step == 1 && !state.has_base);
	ck_assert(!has_step(&state, 0, ""));
	publish_state_close(&state);
}
END_TEST

/* Version 0.1.0 wrote no base: it kept a copy of each committed step. */
START_TEST(a_state_without_a_base_has_it_in_the_committed_step)
{
	struct publish_state state;
	struct error err = {0};
	open_state(&state);
	make_pending(&state, 3);
	ck_assert_int_eq(publish_state_commit(&state, false, &err), 0);
	char *const path = publish_state_work_path(&state, "state.json");
	publish_state_close(&state);
	put(path,
		"{\"version\":1,\"endpoint\":\"https://host:9000\",\"run\":\"b/r\",\"epoch\":1,\"committed\":{\"step\":3,"
		"\"digest\":\"xxh3-128:00000000000000000000000000000001\",\"content\":\"xxh3-128:00000000000000000000000000000002\"},"
		"\"pending\":null}");
	free(path);
	open_state(&state);
	ck_assert(state.has_base);
	ck_assert_mem_eq(&state.base, &state.committed, sizeof state.base);
	ck_assert(has_step(&state, 3, "checkpoint/model.safetensors"));
	publish_state_close(&state);
}
END_TEST

START_TEST(dropping_the_pending_step_keeps_the_baseline)
{
	struct publish_state state;
	struct error err = {0};
	open_state(&state);
	make_pending(&state, 0);
	ck_assert_int_eq(publish_state_commit(&state, false, &err), 0);
	make_pending(&state, 1);
	ck_assert_int_eq(publish_state_drop_pending(&state, &err), 0);
	publish_state_close(&state);
	open_state(&state);
	ck_assert(!state.has_pending);
	ck_assert(has_step(&state, 0, "checkpoint"));
	ck_assert(!has_step(&state, 1, ""));
	publish_state_close(&state);
}
END_TEST

/* Does what publisher.c does: makes the copy, and then the pending step that it belongs to. */
static void set_pending(struct publish_state *state, const struct publish_mark *wanted)
{
	struct error err = {0};
	char *const fresh = publish_state_new_path(state);
	char *const file = folder_files_join(fresh, "model.safetensors");
	put(file, "weights");
	ck_assert_msg(publish_state_set_pending(state, wanted, &err) == 0, "%s", err.text);
	free(file);
	free(fresh);
}

static const struct {
	uint64_t step;
	uint8_t seed;
	bool resumes;
} later_calls[] = {{1, 1, true}, {1, 7, false}, {2, 1, false}, {2, 7, false}};

/* Uploads and delta of an earlier call count only for exactly the weights of the pending step. */
START_TEST(only_the_same_step_of_the_same_weights_is_gone_on_with)
{
	struct publish_state state;
	struct error err = {0};
	struct buffer sent;
	const struct publish_mark first = mark(1, 1);
	const struct publish_mark later = mark(later_calls[_i].step, later_calls[_i].seed);
	open_state(&state);
	set_pending(&state, &first);
	char *const delta = publish_state_path(&state, 1, "delta/delta.safetensors");
	put(delta, "delta");
	ck_assert_int_eq(publish_state_add_sent(&state, "/b/one", &err), 0);
	publish_state_close(&state);
	open_state(&state);
	set_pending(&state, &later);
	for (int opened = 0; opened < 2; opened++) {
		ck_assert(state.has_pending);
		ck_assert_mem_eq(&state.pending, &later, sizeof later);
		ck_assert(has_step(&state, later.step, "checkpoint/model.safetensors"));
		ck_assert_int_eq(file_exists(delta), later_calls[_i].resumes);
		ck_assert_int_eq(publish_state_read_sent(&state, &sent, &err), 0);
		ck_assert_str_eq(buffer_text(&sent), later_calls[_i].resumes ? "/b/one\n" : "");
		buffer_release(&sent);
		publish_state_close(&state);
		open_state(&state);
	}
	publish_state_close(&state);
	free(delta);
}
END_TEST

/* The publisher was killed after the copy and before state.json named it. */
START_TEST(leftovers_are_removed)
{
	static const uint64_t strays[] = {7, 1234567};
	struct publish_state state;
	for (size_t i = 0; i < sizeof strays / sizeof strays[0]; i++) {
		open_state(&state);
		char *const stray =
			publish_state_path(&state, strays[i], "checkpoint/model.safetensors");
		put(stray, "half a step");
		publish_state_close(&state);
		open_state(&state);
		ck_assert(!has_step(&state, strays[i], ""));
		publish_state_close(&state);
		free(stray);
	}
}
END_TEST

/* The publisher was killed during the very first write of state.json, and during a later one. */
START_TEST(a_killed_write_does_not_make_the_folder_foreign)
{
	struct publish_state state;
	char *const temporary = folder_files_join(folder, "state.json.tmp-0123456789abcdef");
	for (int turn = 0; turn < 2; turn++) {
		put(temporary, "{\"version\"");
		open_state(&state);
		ck_assert(!file_exists(temporary));
		publish_state_close(&state);
	}
	free(temporary);
}
END_TEST

START_TEST(one_publisher_at_a_time)
{
	struct publish_state state;
	struct publish_state second;
	struct error err = {0};
	open_state(&state);
	ck_assert_int_eq(try_open(&second, ENDPOINT, "b/r", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	publish_state_close(&state);
}
END_TEST

START_TEST(another_runs_state_is_refused)
{
	struct publish_state state;
	struct error err = {0};
	open_state(&state);
	publish_state_close(&state);
	ck_assert_int_eq(try_open(&state, ENDPOINT, "b/other", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
	ck_assert_int_eq(try_open(&state, "https://elsewhere", "b/r", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
}
END_TEST

/* A folder with checkpoints named step-* that is given by mistake must survive. */
START_TEST(a_folder_with_other_files_is_never_touched)
{
	struct publish_state state;
	struct error err = {0};
	char *const foreign = folder_files_join(folder, "step-000100/model.safetensors");
	put(foreign, "precious");
	ck_assert_int_eq(try_open(&state, ENDPOINT, "b/r", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
	ck_assert(file_exists(foreign));
	free(foreign);
}
END_TEST

#define MARK(step)                                                                     \
	"{\"step\":" step ",\"digest\":\"xxh3-128:00000000000000000000000000000001\"," \
	"\"content\":\"xxh3-128:00000000000000000000000000000002\"}"
static const char *const BROKEN[] = {
	"",
	"{",
	"[]",
	"{\"version\":1}",
	"{\"version\":1,\"endpoint\":\"https://host:9000\",\"run\":\"b/r\",\"epoch\":\"x\"}",
	"{\"version\":1,\"endpoint\":\"https://host:9000\",\"run\":\"b/r\",\"committed\":{\"step\":1}}",
	/* a base, and no committed step or an earlier one */
	"{\"version\":1,\"endpoint\":\"https://host:9000\",\"run\":\"b/r\",\"base\":" MARK("3") "}",
	"{\"version\":1,\"endpoint\":\"https://host:9000\",\"run\":\"b/r\",\"committed\":" MARK(
		"2") ",\"base\":" MARK("3") "}",
};

START_TEST(a_damaged_state_is_not_guessed_at)
{
	struct publish_state state;
	struct error err = {0};
	open_state(&state);
	char *const file = publish_state_work_path(&state, "state.json");
	publish_state_close(&state);
	put(file, BROKEN[_i]);
	ck_assert_int_eq(try_open(&state, ENDPOINT, "b/r", &err), -1);
	ck_assert_msg(err.kind == ERROR_CORRUPT, "%s", err.text);
	free(file);
}
END_TEST

static int open_anew(struct publish_state *state, struct error *err)
{
	const struct publish_state_params params = {.files = file_system(),
		.folder = folder,
		.endpoint = ENDPOINT,
		.run = "b/r",
		.may_replace = true};
	return publish_state_open(state, &params, err);
}

/* A publisher that takes the run over does so, whether state.json is damaged or gone. */
START_TEST(what_is_left_of_a_state_is_begun_anew_on_demand)
{
	struct publish_state state;
	struct error err = {0};
	open_state(&state);
	state.has_epoch = true;
	make_pending(&state, 3);
	ck_assert_int_eq(publish_state_commit(&state, false, &err), 0);
	char *const incoming = publish_state_work_path(&state, "incoming/part");
	char *const file = publish_state_work_path(&state, "state.json");
	publish_state_close(&state);
	put(incoming, "half a download");
	if (_i == 0)
		put(file, "{\"version\":");
	else
		ck_assert_int_eq(file_remove_tree(file_system(), file, &err), 0);
	ck_assert_int_eq(try_open(&state, ENDPOINT, "b/r", &err), -1);
	ck_assert_msg(strstr(err.text, "--take-over makes a new state") != NULL, "%s", err.text);
	ck_assert_msg(open_anew(&state, &err) == 0, "%s", err.text);
	ck_assert(!state.has_epoch && !state.has_committed && !state.has_base &&
		!has_step(&state, 3, ""));
	publish_state_close(&state);
	open_state(&state);
	publish_state_close(&state);
	free(file);
	free(incoming);
}
END_TEST

/* Not even by a publisher that takes the run over. */
START_TEST(what_is_not_ours_is_never_begun_anew)
{
	static const struct {
		const char *name;
		const char *text;
	} foreign[] = {{"weights.bin", "x"}, {"step-final/weights.bin", "x"},
		{"state.json", "{\"epoch\": 3, \"optimizer\": \"adam\"}"}};
	struct publish_state state;
	struct error err = {0};
	char *const path = folder_files_join(folder, foreign[_i].name);
	put(path, foreign[_i].text);
	ck_assert_int_eq(open_anew(&state, &err), -1);
	ck_assert(file_exists(path));
	free(path);
}
END_TEST

START_TEST(a_newer_version_is_refused)
{
	struct publish_state state;
	struct error err = {0};
	open_state(&state);
	char *const file = publish_state_work_path(&state, "state.json");
	publish_state_close(&state);
	put(file, "{\"version\":2,\"endpoint\":\"https://host:9000\",\"run\":\"b/r\"}");
	ck_assert_int_eq(try_open(&state, ENDPOINT, "b/r", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UNSUPPORTED);
	free(file);
}
END_TEST

START_TEST(the_default_folder_is_per_endpoint_and_run)
{
	struct error err = {0};
	setenv("HOME", "/home/u", 1);
	unsetenv("XDG_STATE_HOME");
	char *path = publish_state_default_folder(ENDPOINT, "b/r", &err);
	ck_assert_str_eq(path, "/home/u/.local/state/deltabucket/https%3A%2F%2Fhost%3A9000/b/r");
	free(path);
	setenv("XDG_STATE_HOME", "/state", 1);
	path = publish_state_default_folder("http://h", "b/r", &err);
	ck_assert_str_eq(path, "/state/deltabucket/http%3A%2F%2Fh/b/r");
	free(path);
	unsetenv("XDG_STATE_HOME");
	unsetenv("HOME");
	ck_assert_ptr_null(publish_state_default_folder(ENDPOINT, "b/r", &err));
}
END_TEST

Suite *test_publish_state_suite(void);
Suite *test_publish_state_suite(void)
{
	Suite *const suite = suite_create("publish_state");
	TCase *const tests = tcase_create("publish_state");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_new_folder_knows_nothing);
	tcase_add_test(tests, everything_is_remembered);
	tcase_add_test(tests, committing_keeps_the_checkpoint_only);
	tcase_add_test(tests, deltas_without_copies_stay_behind_the_base);
	tcase_add_test(tests, a_step_that_left_nothing_is_no_base);
	tcase_add_test(tests, a_state_without_a_base_has_it_in_the_committed_step);
	tcase_add_test(tests, dropping_the_pending_step_keeps_the_baseline);
	tcase_add_loop_test(tests, only_the_same_step_of_the_same_weights_is_gone_on_with, 0,
		sizeof later_calls / sizeof later_calls[0]);
	tcase_add_test(tests, leftovers_are_removed);
	tcase_add_test(tests, a_killed_write_does_not_make_the_folder_foreign);
	tcase_add_test(tests, one_publisher_at_a_time);
	tcase_add_test(tests, another_runs_state_is_refused);
	tcase_add_test(tests, a_folder_with_other_files_is_never_touched);
	tcase_add_loop_test(
		tests, a_damaged_state_is_not_guessed_at, 0, sizeof BROKEN / sizeof BROKEN[0]);
	tcase_add_loop_test(tests, what_is_left_of_a_state_is_begun_anew_on_demand, 0, 2);
	tcase_add_loop_test(tests, what_is_not_ours_is_never_begun_anew, 0, 3);
	tcase_add_test(tests, a_newer_version_is_refused);
	tcase_add_test(tests, the_default_folder_is_per_endpoint_and_run);
	suite_add_tcase(suite, tests);
	return suite;
}
