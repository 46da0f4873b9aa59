/* Publishing from memory against a server in memory: what is sent, what the state folder holds
 * afterwards, and that a worker ends with exactly the published tensors, also after kills. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/local/folder_files.h"
#include "client/publish/publisher.h"
#include "tests/unit/client/command_fixture.h"
#include "tests/unit/client/run_server.h"

enum { W = 3000, B = 64, TENSORS = 2 };

static const uint64_t SHAPE_W[] = {W / 2, 2};
static const uint64_t SHAPE_B[] = {B};
static char *scratch;
static struct run_server server;
static struct kept_mapping mapping;
static bool is_mapped; /* the state folder lies in memory */

/* The weights of one iteration: some of `w` change from one to the next, `b` never does. */
struct weights {
	uint16_t w[W];
	uint8_t b[B];
	struct memory_tensor tensors[TENSORS];
	struct memory_file files[2];
	struct memory_parts parts;
};

static void set_up(void)
{
	scratch = unit_scratch_make();
	is_mapped = false;
	run_server_start(&server);
}

static void tear_down(void)
{
	kept_mapping_release(&mapping);
	run_server_stop(&server);
	unit_scratch_remove(scratch);
}

static void fill(struct weights *weights, unsigned iteration)
{
	uint64_t state = 1;
	for (unsigned i = 0; i < W; i++) {
		state = state * 6364136223846793005U + 1442695040888963407U;
		weights->w[i] = (uint16_t)(0x3c00 + (state >> 54) + (i % 100 == 0 ? iteration : 0));
	}
	memset(weights->b, 7, sizeof weights->b);
	weights->tensors[0] = (struct memory_tensor){
		span_text("w"), DTYPE_BF16, SHAPE_W, 2, span_of(weights->w, sizeof weights->w)};
	weights->tensors[1] = (struct memory_tensor){
		span_text("b"), DTYPE_U8, SHAPE_B, 1, span_of(weights->b, sizeof weights->b)};
	weights->files[0] = (struct memory_file){"config.json", span_text("{\"a\": 1}")};
	weights->files[1] = (struct memory_file){"tokens/all.txt", span_text("a b c")};
	weights->parts = (struct memory_parts){weights->tensors, TENSORS, weights->files, 2, NULL};
}

struct publishing {
	struct publish_order order;
	const struct file_ops *files;
	const char *state;
	struct stop *stop;
	struct publish_outcome outcome;
	struct error err;
};

static struct publishing publishing_of(const struct weights *weights)
{
	return (struct publishing){.order = {.memory = &weights->parts, .threads = 2},
		.files = file_system(),
		.state = "state"};
}

static int publish(struct publishing *publishing)
{
	struct session session = {.files = publishing->files,
		.stop = publishing->stop,
		.output = {.quiet = true},
		.remote_options = {.endpoint = web_endpoint(server.web)}};
	char *const state = folder_files_join(scratch, publishing->state);
	session.remote_options.output = &session.output;
	publishing->order.state_folder = state;
	publishing->order.mapping = is_mapped ? &mapping : NULL;
	publishing->err = (struct error){0};
	const int result = publisher_run(
		&session, "b/r", &publishing->order, &publishing->outcome, &publishing->err);
	free(state);
	return result;
}

static struct publish_outcome publish_ok(unsigned iteration, const char *state)
{
	struct weights weights;
	fill(&weights, iteration);
	struct publishing publishing = publishing_of(&weights);
	publishing.state = state;
	ck_assert_msg(publish(&publishing) == 0, "%s", publishing.err.text);
	return publishing.outcome;
}

static void expect_bytes(const char *name, struct span want)
{
	struct error err = {0};
	struct buffer held;
	char *const path = folder_files_join(scratch, name);
	buffer_init(&held, 100000);
	ck_assert_msg(file_read_all(path, &held, &err) == 0, "%s", err.text);
	ck_assert_msg(span_equal(buffer_span(&held), want), "%s differs", name);
	buffer_release(&held);
	free(path);
}

/* Checks that the checkpoint in this folder is that of the iteration, tensor for tensor. */
static void expect_weights(const char *name, unsigned iteration)
{
	struct error err = {0};
	struct weights want;
	fill(&want, iteration);
	char *const path = folder_files_join(scratch, name);
	struct checkpoint *const held = checkpoint_open(path, &err);
	ck_assert_msg(held != NULL, "%s", err.text);
	ck_assert_uint_eq(checkpoint_file_count(held), 3);
	ck_assert(span_equal(checkpoint_tensor(held, 0), want.tensors[1].data));
	ck_assert_msg(span_equal(checkpoint_tensor(held, 1), want.tensors[0].data),
		"%s is not iteration %u", name, iteration);
	checkpoint_close(held);
	free(path);
}

/* A worker that comes now holds the weights of this iteration in the end. */
static void expect_worker(unsigned iteration)
{
	char words[4096];
	struct error err = {0};
	char *const into = folder_files_join(scratch, "worker");
	ck_assert_int_eq(file_remove_tree(file_system(), into, &err), 0);
	snprintf(
		words, sizeof words, "--quiet --json --once --threads 1 --run b/r --into %s", into);
	struct command_result result = command_fixture_run(
		command_follow, COMMAND_FOLLOW, web_endpoint(server.web), words);
	ck_assert_msg(result.status == 0, "%s", result.err.text);
	command_result_release(&result);
	expect_weights("worker/current", iteration);
	free(into);
}

START_TEST(only_the_first_step_goes_whole)
{
	is_mapped = _i == 1;
	const struct publish_outcome first = publish_ok(0, "state");
	ck_assert_uint_gt(first.anchor_bytes, 0);
	ck_assert_uint_eq(first.delta_bytes, 0);
	for (unsigned i = 1; i < 4; i++) {
		const struct publish_outcome next = publish_ok(i, "state");
		ck_assert_uint_eq(next.step, i);
		ck_assert_uint_eq(next.anchor_bytes, 0);
		ck_assert_uint_gt(next.delta_bytes, 0);
		ck_assert_uint_eq(next.stats.changed_elements, W / 100);
		char name[64];
		snprintf(name, sizeof name, "state/step-00000%u/checkpoint", i);
		expect_weights(name, i);
		expect_worker(i);
	}
	ck_assert_int_eq(mapping.bytes != NULL, is_mapped);
}
END_TEST

/* The file that is mapped is not the one that a step leaves which went whole. */
START_TEST(a_new_file_is_mapped_anew)
{
	struct weights weights;
	is_mapped = true;
	publish_ok(0, "state");
	publish_ok(1, "state");
	fill(&weights, 2);
	struct publishing publishing = publishing_of(&weights);
	publishing.order.anchor.when = ANCHOR_ALWAYS;
	ck_assert_msg(publish(&publishing) == 0, "%s", publishing.err.text);
	ck_assert_ptr_eq(mapping.bytes, NULL);
	publish_ok(3, "state");
	expect_weights("state/step-000003/checkpoint", 3);
	publish_ok(4, "state");
	expect_weights("state/step-000004/checkpoint", 4);
	expect_worker(4);
}
END_TEST

/* What is published is, byte for byte, what the command publishes of the file with these tensors. */
START_TEST(the_manifest_is_that_of_the_file)
{
	struct error err = {0};
	struct snapshot file;
	publish_ok(0, "state");
	publish_ok(1, "state");
	const struct step_message *const step = run_server_step(&server, 1);
	char *const path = folder_files_join(scratch, "state/step-000001/checkpoint");
	ck_assert_msg(snapshot_open(&file, path, NULL, 1, NULL, &err) == 0, "%s", err.text);
	ck_assert(digest128_equal(&step->digest, &file.digest));
	ck_assert(digest128_equal(&step->schema_digest, &file.schema_digest));
	ck_assert_uint_eq(step->tensor_digests.len, TENSORS * sizeof(struct digest128));
	ck_assert_mem_eq(step->tensor_digests.data, file.tensor_digests, step->tensor_digests.len);
	ck_assert_uint_eq(step->file_count, file.file_count);
	for (size_t i = 0; i < file.file_count; i++) {
		ck_assert(span_equal(step->files[i].path, file.files[i].path));
		ck_assert_uint_eq(step->files[i].size, file.files[i].size);
		ck_assert(digest128_equal(&step->files[i].digest, &file.files[i].digest));
	}
	snapshot_close(&file);
	free(path);
}
END_TEST

START_TEST(a_new_publisher_fetches_the_head_and_sends_a_delta)
{
	struct weights weights;
	publish_ok(0, "state");
	publish_ok(1, "state");
	fill(&weights, 2);
	struct publishing publishing = publishing_of(&weights);
	publishing.state = "other";
	ck_assert_int_eq(publish(&publishing), -1);
	ck_assert_int_eq(publishing.err.kind, ERROR_STALE_EPOCH);
	publishing.order.take_over = true;
	ck_assert_msg(publish(&publishing) == 0, "%s", publishing.err.text);
	ck_assert_uint_eq(publishing.outcome.anchor_bytes, 0);
	ck_assert_uint_eq(publish_ok(3, "other").anchor_bytes, 0);
	expect_worker(3);
}
END_TEST

START_TEST(an_anchor_that_is_wanted_is_the_baseline)
{
	struct weights weights;
	publish_ok(0, "state");
	fill(&weights, 1);
	struct publishing publishing = publishing_of(&weights);
	publishing.order.anchor.when = ANCHOR_ALWAYS;
	ck_assert_msg(publish(&publishing) == 0, "%s", publishing.err.text);
	ck_assert_uint_gt(publishing.outcome.anchor_bytes, 0);
	ck_assert_uint_gt(publishing.outcome.delta_bytes, 0);
	expect_weights("state/step-000001/checkpoint", 1);
	ck_assert_uint_eq(publish_ok(2, "state").anchor_bytes, 0);
	expect_worker(2);
}
END_TEST

START_TEST(a_failed_call_continues)
{
	struct weights weights;
	publish_ok(0, "state");
	fill(&weights, 1);
	struct publishing publishing = publishing_of(&weights);
	publishing.order.has_step = true;
	publishing.order.step = 1;
	server.refusals = 1;
	ck_assert_int_eq(publish(&publishing), -1);
	ck_assert_int_eq(publishing.err.kind, ERROR_NO_SPACE);
	server.cuts = 100; /* it is published, and the answers are lost */
	ck_assert_int_eq(publish(&publishing), -1);
	server.cuts = 0;
	ck_assert_msg(publish(&publishing) == 0, "%s", publishing.err.text);
	ck_assert(publishing.outcome.already);
	ck_assert_uint_eq(server.count, 2);
	expect_worker(1);
	ck_assert_uint_eq(publish_ok(2, "state").anchor_bytes, 0);
	expect_worker(2);
}
END_TEST

START_TEST(a_step_that_was_published_differently_is_refused)
{
	struct weights weights;
	publish_ok(0, "state");
	publish_ok(1, "state");
	fill(&weights, 5);
	struct publishing publishing = publishing_of(&weights);
	publishing.order.has_step = true;
	publishing.order.step = 1;
	ck_assert_int_eq(publish(&publishing), -1);
	ck_assert_int_eq(publishing.err.kind, ERROR_STEP_DIFFERS);
	ck_assert_uint_eq(publish_ok(2, "state").anchor_bytes, 0);
}
END_TEST

START_TEST(a_call_that_is_cancelled_sends_nothing)
{
	struct weights weights;
	publish_ok(0, "state");
	fill(&weights, 1);
	struct publishing publishing = publishing_of(&weights);
	publishing.stop = stop_new();
	stop_give(publishing.stop, STOP_CANCELLED);
	ck_assert_int_eq(publish(&publishing), -1);
	ck_assert_int_eq(publishing.err.kind, ERROR_BUSY);
	stop_free(publishing.stop);
	publishing.stop = NULL;
	ck_assert_msg(publish(&publishing) == 0, "%s", publishing.err.text);
	ck_assert_uint_eq(publishing.outcome.anchor_bytes, 0);
	expect_worker(1);
}
END_TEST

START_TEST(other_tensors_do_not_fit_the_run)
{
	struct weights weights;
	publish_ok(0, "state");
	fill(&weights, 1);
	weights.tensors[1].name = span_text("c");
	struct publishing publishing = publishing_of(&weights);
	ck_assert_int_eq(publish(&publishing), -1);
	ck_assert_int_eq(publishing.err.kind, ERROR_SCHEMA_MISMATCH);
	ck_assert_uint_eq(publish_ok(1, "state").anchor_bytes, 0);
}
END_TEST

/* Other files beside the tensors: the copy follows in these, too. */
START_TEST(files_follow_the_tensors)
{
	struct weights weights;
	publish_ok(0, "state");
	fill(&weights, 1);
	weights.files[0].bytes = span_text("{\"a\": 2}");
	weights.files[1] = (struct memory_file){"more.txt", span_text("new")};
	struct publishing publishing = publishing_of(&weights);
	ck_assert_msg(publish(&publishing) == 0, "%s", publishing.err.text);
	expect_bytes("state/step-000001/checkpoint/config.json", span_text("{\"a\": 2}"));
	expect_bytes("state/step-000001/checkpoint/more.txt", span_text("new"));
	ck_assert_uint_eq(publish_ok(2, "state").anchor_bytes, 0);
	expect_worker(2);
}
END_TEST

START_TEST(a_format_that_cannot_hold_them_goes_whole)
{
	struct weights weights;
	publish_ok(0, "state");
	fill(&weights, 1);
	weights.b[3]++; /* not BF16 */
	struct publishing publishing = publishing_of(&weights);
	publishing.order.format = DELTA_TRL_GAP;
	ck_assert_msg(publish(&publishing) == 0, "%s", publishing.err.text);
	ck_assert_uint_gt(publishing.outcome.anchor_bytes, 0);
	ck_assert_uint_eq(publishing.outcome.delta_bytes, 0);
	weights.b[3]--;
	expect_bytes("state/step-000001/checkpoint/tokens/all.txt", span_text("a b c"));
	ck_assert_uint_eq(publish_ok(2, "state").anchor_bytes, 0);
	expect_worker(2);
}
END_TEST

/* Paths and memory may take turns on one state folder. */
START_TEST(a_path_may_follow)
{
	struct weights weights;
	publish_ok(0, "state");
	publish_ok(1, "other/../state");
	fill(&weights, 2);
	struct publishing publishing = publishing_of(&weights);
	ck_assert_msg(publish(&publishing) == 0, "%s", publishing.err.text);
	char *const worker = folder_files_join(scratch, "worker/current");
	expect_worker(2);
	publishing.order.memory = NULL;
	publishing.order.checkpoint = worker;
	ck_assert_msg(publish(&publishing) == 0, "%s", publishing.err.text);
	ck_assert_uint_eq(publishing.outcome.step, 3);
	ck_assert_uint_eq(publishing.outcome.anchor_bytes, 0);
	ck_assert_uint_eq(publish_ok(4, "state").anchor_bytes, 0);
	expect_worker(4);
	free(worker);
}
END_TEST

/* Kills a publish before its write number `writes`; true when it had ended before. */
static bool publish_and_kill(unsigned iteration, int kinds, int writes)
{
	web_settle(server.web);
	const pid_t child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		struct weights weights;
		struct file_faults faults;
		fill(&weights, iteration);
		struct publishing publishing = publishing_of(&weights);
		file_faults_init(&faults, kinds, writes, 0);
		faults.kill = true;
		publishing.files = &faults.ops;
		_exit(publish(&publishing) == 0 ? 0 : 1);
	}
	int status = 0;
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
	return WIFEXITED(status);
}

static const int KINDS[] = {
	FILE_FAULT_WRITE, FILE_FAULT_RENAME, FILE_FAULT_UNLINK, FILE_FAULT_OPEN};

/* Also in the middle of the writes into the copy: whatever is left, the next call makes its delta
 * against the right baseline. */
START_TEST(a_kill_spoils_nothing)
{
	unsigned iteration = 0;
	bool ended = false;
	publish_ok(iteration, "state");
	for (int writes = 0; !ended; writes++) {
		ck_assert_int_lt(writes, 200);
		ended = publish_and_kill(++iteration, KINDS[_i], writes);
		const struct publish_outcome next = publish_ok(++iteration, "state");
		ck_assert_msg(next.anchor_bytes == 0, "a surprise anchor after kill %d", writes);
		expect_worker(iteration);
		if (server.count + 3 > RUN_SERVER_STEPS) {
			run_server_stop(&server);
			run_server_start(&server);
			struct error err = {0};
			char *const state = folder_files_join(scratch, "state");
			ck_assert_int_eq(file_remove_tree(file_system(), state, &err), 0);
			free(state);
			publish_ok(++iteration, "state");
		}
	}
}
END_TEST

/* Bits flip in the copy: the delta's pass finds it, and the step is fetched. */
START_TEST(a_damaged_copy_is_fetched_again)
{
	struct error err = {0};
	struct buffer bytes;
	publish_ok(0, "state");
	publish_ok(1, "state");
	char *const path =
		folder_files_join(scratch, "state/step-000001/checkpoint/model.safetensors");
	buffer_init(&bytes, 100000);
	ck_assert_int_eq(file_read_all(path, &bytes, &err), 0);
	bytes.data[bytes.len - 1] ^= 1;
	ck_assert_int_eq(file_place(file_system(), path, buffer_span(&bytes), 0600, &err), 0);
	ck_assert_uint_eq(publish_ok(2, "state").anchor_bytes, 0);
	expect_weights("state/step-000002/checkpoint", 2);
	expect_worker(2);
	buffer_release(&bytes);
	free(path);
}
END_TEST

Suite *test_publish_memory_suite(void);
Suite *test_publish_memory_suite(void)
{
	Suite *const suite = suite_create("publish_memory");
	TCase *const tests = tcase_create("publish_memory");
	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, only_the_first_step_goes_whole, 0, 2);
	tcase_add_test(tests, a_new_file_is_mapped_anew);
	tcase_add_test(tests, the_manifest_is_that_of_the_file);
	tcase_add_test(tests, a_new_publisher_fetches_the_head_and_sends_a_delta);
	tcase_add_test(tests, an_anchor_that_is_wanted_is_the_baseline);
	tcase_add_test(tests, a_failed_call_continues);
	tcase_add_test(tests, a_step_that_was_published_differently_is_refused);
	tcase_add_test(tests, a_call_that_is_cancelled_sends_nothing);
	tcase_add_test(tests, other_tensors_do_not_fit_the_run);
	tcase_add_test(tests, files_follow_the_tensors);
	tcase_add_test(tests, a_format_that_cannot_hold_them_goes_whole);
	tcase_add_test(tests, a_path_may_follow);
	tcase_add_loop_test(tests, a_kill_spoils_nothing, 0, sizeof KINDS / sizeof KINDS[0]);
	tcase_add_test(tests, a_damaged_copy_is_fetched_again);
	suite_add_tcase(suite, tests);
	return suite;
}
