/* Following from a program: which step comes, how long a call waits, and what the weights are, in a
 * folder and in memory. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/follow/held_step.h"
#include "client/follow/next_step.h"
#include "client/local/folder_files.h"
#include "client/work/stop.h"
#include "tests/unit/client/training_fixture.h"

enum { FOLDER, MEMORY, MODES };

static struct training training;
static struct remote_options remote;
static struct session session;
static struct stepper_params params;
static struct stepper stepper;
static char *into;
static const char *parents[3];
static char told[4096];

static void take_sentence(void *owner, const char *sentence, bool is_warning)
{
	(void)owner;
	(void)is_warning;
	const size_t used = strlen(told);
	snprintf(told + used, sizeof told - used, "%s\n", sentence);
}

static void set_up(void)
{
	training_start(&training);
	into = folder_files_join(training.scratch, "worker");
	told[0] = '\0';
}

static void tear_down(void)
{
	stepper_close(&stepper, true, true);
	free(into);
	training_stop(&training);
}

static void open_worker(int mode)
{
	struct error err = {0};
	bool is_whole;
	remote = (struct remote_options){.endpoint = web_endpoint(training.server.web)};
	session = (struct session){.output = {.told = take_sentence},
		.files = file_system(),
		.remote_options = remote};
	parents[0] = training.scratch;
	params = (struct stepper_params){.run = "b/r",
		.into = mode == FOLDER ? into : NULL,
		.remote = &remote,
		.parents = parents,
		.threads = 1,
		.poll_s = 1,
		.goodbye_ms = 60000,
		.keeps_deltas = true,
		.keeps_changes = true};
	ck_assert_msg(stepper_open(&stepper, &params, &session, &err) == 0, "%s", err.text);
	ck_assert_int_eq(stepper_prove(&stepper, &is_whole, &err), 0);
	stepper_leave(&stepper);
}

static int ask(const struct next_order *order, struct held_step **out, struct error *err)
{
	struct stepper_round round;
	ck_assert_int_eq(stepper_enter(&stepper, &session, err), 0);
	int result = next_step(&stepper, order, &round, err);
	*out = result > 0 ? held_step_new(&stepper, &round, err) : NULL;
	if (result > 0 && *out == NULL)
		result = -1;
	stepper_leave(&stepper);
	return result;
}

static struct held_step *expect_next(const struct next_order *order, uint64_t number)
{
	struct error err = {0};
	struct held_step *step;
	ck_assert_msg(ask(order, &step, &err) == 1, "%s", err.text);
	ck_assert_uint_eq(held_step_facts(step)->number, number);
	return step;
}

static void expect_none(const struct next_order *order)
{
	struct error err = {0};
	struct held_step *step;
	ck_assert_msg(ask(order, &step, &err) == 0, "%s", err.text);
}

static void expect_failed(const struct next_order *order, enum error_kind kind)
{
	struct error err = {0};
	struct held_step *step;
	ck_assert_int_eq(ask(order, &step, &err), -1);
	ck_assert_msg(err.kind == kind, "%s: %s", error_kind_name(err.kind), err.text);
}

/* The tensors are those of the step as it was published. */
static void expect_weights(const struct held_step *step)
{
	const struct schema *const schema = held_step_schema(step);
	struct digest128 digests[2];
	ck_assert_uint_eq(schema_count(schema), 2);
	for (size_t i = 0; i < 2; i++)
		digests[i] = xxh3_128(span_of(
			held_step_tensor(step, i), (size_t)schema_tensor(schema, i)->bytes));
	const struct digest128 digest = schema_checkpoint_digest(schema, digests);
	ck_assert(digest128_equal(&digest,
		&run_server_step(&training.server, held_step_facts(step)->number)->digest));
}

static void expect_facts(const struct held_step *step, size_t deltas, uint64_t newest)
{
	const struct held_step_facts *const facts = held_step_facts(step);
	ck_assert_uint_eq(facts->delta_count, deltas);
	ck_assert_uint_eq(facts->newest, newest);
	ck_assert_uint_gt(facts->fetched_bytes, 0);
	for (size_t i = 0; i < deltas; i++)
		ck_assert(file_exists(facts->deltas[i]));
}

static void publish(unsigned iteration)
{
	training_step(&training, iteration, "state", "\"published\"");
}

static const struct next_order now = {.is_seen = true};
static const struct next_order unseen;

START_TEST(each_step_comes_once_with_its_weights)
{
	open_worker(_i);
	for (unsigned i = 0; i < 4; i++) {
		publish(i);
		struct held_step *const step = expect_next(&now, i);
		expect_weights(step);
		expect_facts(step, i == 0 ? 0 : 1, i);
		held_step_free(step);
		expect_none(&now);
	}
}
END_TEST

START_TEST(one_that_was_away_gets_the_newest_step_by_several_deltas)
{
	open_worker(_i);
	publish(0);
	held_step_free(expect_next(&now, 0));
	for (unsigned i = 1; i < 4; i++)
		publish(i);
	struct held_step *const step = expect_next(&now, 3);
	expect_weights(step);
	expect_facts(step, 3, 3);
	held_step_free(step);
}
END_TEST

/* More than one pass takes: these are not kept. */
START_TEST(one_that_was_away_for_long_gets_the_newest_step)
{
	open_worker(_i);
	publish(0);
	held_step_free(expect_next(&now, 0));
	for (unsigned i = 1; i < RUN_SERVER_STEPS; i++)
		publish(i);
	struct held_step *const step = expect_next(&now, RUN_SERVER_STEPS - 1);
	expect_weights(step);
	held_step_free(step);
}
END_TEST

START_TEST(one_that_comes_late_begins_with_an_anchor)
{
	for (unsigned i = 0; i < 3; i++)
		publish(i);
	open_worker(_i);
	struct held_step *const step = expect_next(&now, 2);
	expect_weights(step);
	expect_facts(step, 0, 2);
	held_step_free(step);
}
END_TEST

START_TEST(a_wanted_step_comes_also_backwards)
{
	const struct next_order wanted = {.is_seen = true, .has_wanted = true, .wanted = 1};
	for (unsigned i = 0; i < 4; i++)
		publish(i);
	open_worker(_i);
	held_step_free(expect_next(&now, 3));
	stepper.from_anchor = true; /* the small server knows no way back */
	struct held_step *step = expect_next(&wanted, 1);
	expect_weights(step);
	expect_facts(step, 0, 3);
	held_step_free(step);
	held_step_free(expect_next(&wanted, 1));
	step = expect_next(&now, 3);
	expect_weights(step);
	expect_facts(step, 2, 3);
	held_step_free(step);
}
END_TEST

static void hold(uint64_t step)
{
	training.server.held = step;
	training.server.is_held = true;
	training.server.fetches = 0;
}

static void follow_to(unsigned last)
{
	for (unsigned i = 0; i <= last; i++) {
		publish(i);
		held_step_free(expect_next(&now, i));
	}
}

/* In a folder, the step before the newest is still there: nothing is fetched. */
START_TEST(a_rollback_is_obeyed_until_it_ends)
{
	open_worker(_i);
	follow_to(3);
	hold(2);
	struct held_step *step = expect_next(&now, 2);
	expect_weights(step);
	ck_assert_int_eq(training.server.fetches == 0, _i == FOLDER);
	ck_assert_int_eq(held_step_facts(step)->fetched_bytes == 0, _i == FOLDER);
	ck_assert_uint_eq(held_step_facts(step)->newest, 2); /* it does not lag */
	ck_assert_uint_eq(held_step_facts(step)->delta_count, 0);
	held_step_free(step);
	publish(4);
	expect_none(&now);
	training.server.is_held = false;
	step = expect_next(&now, 4);
	expect_weights(step);
	expect_facts(step, 2, 4);
	held_step_free(step);
}
END_TEST

START_TEST(an_earlier_step_that_is_damaged_is_fetched)
{
	char path[4096];
	open_worker(FOLDER);
	follow_to(3);
	hold(2);
	snprintf(path, sizeof path, "%s/generations/000002/a.safetensors", into);
	const int fd = open(path, O_WRONLY);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, "x", 1, 2000), 1);
	ck_assert_int_eq(close(fd), 0);
	struct held_step *const step = expect_next(&now, 2);
	expect_weights(step);
	ck_assert_int_gt(training.server.fetches, 0);
	held_step_free(step);
}
END_TEST

START_TEST(one_that_starts_in_a_rollback_begins_there)
{
	for (unsigned i = 0; i < 4; i++)
		publish(i);
	hold(1);
	open_worker(_i);
	struct held_step *const step = expect_next(&now, 1);
	expect_weights(step);
	held_step_free(step);
	expect_none(&now);
}
END_TEST

START_TEST(what_the_folder_holds_comes_once_to_one_that_has_not_seen_it)
{
	open_worker(FOLDER);
	publish(0);
	publish(1);
	held_step_free(expect_next(&now, 1));
	stepper_close(&stepper, true, true);
	open_worker(FOLDER);
	expect_none(&now);
	struct held_step *const step = expect_next(&unseen, 1);
	expect_weights(step);
	ck_assert_uint_eq(held_step_facts(step)->fetched_bytes, 0);
	ck_assert_uint_eq(held_step_facts(step)->delta_count, 0);
	held_step_free(step);
	stepper_close(&stepper, true, true);
	training_expect_worker(&training, 1); /* the command line holds it, too */
}
END_TEST

START_TEST(a_step_of_a_folder_stays_when_others_come)
{
	open_worker(FOLDER);
	publish(0);
	struct held_step *const first = expect_next(&now, 0);
	for (unsigned i = 1; i < 4; i++) {
		publish(i);
		held_step_free(expect_next(&now, i));
	}
	expect_weights(first);
	ck_assert(!file_exists(held_step_facts(first)->path));
	held_step_free(first);
}
END_TEST

START_TEST(a_step_in_memory_has_no_tensors_when_another_has_come)
{
	open_worker(MEMORY);
	publish(0);
	struct held_step *const first = expect_next(&now, 0);
	publish(1);
	struct held_step *const second = expect_next(&now, 1);
	ck_assert_ptr_null(held_step_tensor(first, 0));
	ck_assert_uint_eq(schema_count(held_step_schema(first)), 2);
	expect_weights(second);
	held_step_free(first);
	held_step_free(second);
}
END_TEST

/* The positions and values turn the step before into this one. */
static void expect_changes(struct held_step *step, uint8_t *const before[2])
{
	struct error err = {0};
	for (size_t i = 0; i < 2; i++) {
		struct held_step_changes changes;
		ck_assert_msg(held_step_changes(step, i, &changes, &err) == 0, "%s", err.text);
		ck_assert_uint_gt(changes.count, 0);
		ck_assert_uint_lt(changes.count, TRAINING_SHARD_BYTES / 2);
		for (size_t k = 0; k < changes.count; k++) {
			uint8_t *const at = before[i] + 2 * changes.positions[k];
			ck_assert(k == 0 || changes.positions[k] > changes.positions[k - 1]);
			ck_assert_int_ne(memcmp(at, changes.values + 2 * k, 2), 0);
			memcpy(at, changes.values + 2 * k, 2);
		}
		ck_assert_mem_eq(before[i], held_step_tensor(step, i), TRAINING_SHARD_BYTES);
		free(changes.positions);
		free(changes.values);
	}
}

START_TEST(a_step_says_what_changed)
{
	struct error err = {0};
	struct held_step_changes changes;
	uint8_t *before[2];
	open_worker(_i);
	publish(0);
	struct held_step *step = expect_next(&now, 0);
	ck_assert_int_eq(held_step_changes(step, 0, &changes, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UNSUPPORTED);
	for (size_t i = 0; i < 2; i++) {
		before[i] = malloc(TRAINING_SHARD_BYTES);
		memcpy(before[i], held_step_tensor(step, i), TRAINING_SHARD_BYTES);
	}
	held_step_free(step);
	publish(1);
	step = expect_next(&now, 1);
	expect_changes(step, before);
	held_step_free(step);
	publish(2);
	publish(3);
	step = expect_next(&now, 3);
	expect_changes(step, before);
	held_step_free(step);
	free(before[0]);
	free(before[1]);
}
END_TEST

/* What changed can be asked for again, also when the generation before has gone meanwhile. */
START_TEST(changes_stay_while_the_step_is_held)
{
	struct error err = {0};
	struct held_step_changes first, again;
	open_worker(FOLDER);
	publish(0);
	held_step_free(expect_next(&now, 0));
	publish(1);
	struct held_step *const step = expect_next(&now, 1);
	ck_assert_int_eq(held_step_changes(step, 0, &first, &err), 0);
	for (unsigned i = 2; i < 5; i++) {
		publish(i);
		held_step_free(expect_next(&now, i));
	}
	ck_assert_msg(held_step_changes(step, 0, &again, &err) == 0, "%s", err.text);
	ck_assert_uint_gt(first.count, 0);
	ck_assert_uint_eq(again.count, first.count);
	ck_assert_mem_eq(again.positions, first.positions, first.count * sizeof(uint64_t));
	ck_assert_mem_eq(again.values, first.values, 2 * first.count);
	free(first.positions);
	free(first.values);
	free(again.positions);
	free(again.values);
	held_step_free(step);
}
END_TEST

/* The patch notices what it was not made from, and the step comes whole. */
START_TEST(a_flipped_byte_in_memory_is_cured_from_an_anchor)
{
	open_worker(MEMORY);
	publish(0);
	publish(1);
	struct held_step *step = expect_next(&now, 1);
	((uint8_t *)(uintptr_t)held_step_tensor(step, 1))[100 * _i] ^= 4;
	held_step_free(step);
	publish(2);
	step = expect_next(&now, 2);
	expect_weights(step);
	expect_facts(step, 0, 2);
	ck_assert_ptr_nonnull(strstr(told, "making step 2"));
	held_step_free(step);
	publish(3);
	step = expect_next(&now, 3);
	expect_weights(step);
	expect_facts(step, 1, 3);
	held_step_free(step);
}
END_TEST

static void shell(const char *command)
{
	char words[4096];
	snprintf(words, sizeof words, "cd %s && %s", training.scratch, command);
	ck_assert_msg(system(words) == 0, "%s", command);
}

/* With other files, and then with other headers, which no patch in place can make. */
START_TEST(files_are_those_of_the_publisher)
{
	char words[4096];
	open_worker(_i);
	publish(0);
	held_step_free(expect_next(&now, 0));
	static const char *const changes[] = {"echo other >trained/config.json",
		"mkdir -p trained/more && echo 1 >trained/more/a.txt && rm trained/config.json",
		"sed -i 's/\"dtype\":\"BF16\",\"shape\":\\[2000\\]/\"shape\":[2000],\"dtype\":\"BF16\"/'"
		" trained/a.safetensors"};
	for (unsigned i = 0; i < sizeof changes / sizeof changes[0]; i++) {
		training_write(&training, i + 1);
		shell(changes[i]);
		training_expect_ok(training_publish(&training, "", "state"), "\"published\"");
		struct held_step *const step = expect_next(&now, i + 1);
		expect_weights(step);
		char *const current = follow_folder_current(&stepper.folder);
		snprintf(words, sizeof words, "diff -r trained %s", current);
		shell(words);
		free(current);
		held_step_free(step);
	}
	publish(4);
	struct held_step *const step = expect_next(&now, 4);
	expect_weights(step);
	held_step_free(step);
}
END_TEST

START_TEST(a_run_that_does_not_exist_yet_is_no_failure)
{
	const struct next_order soon = {.wait_ms = 300};
	open_worker(_i);
	expect_none(&unseen);
	expect_none(&soon);
	training.server.has_bucket = false;
	expect_none(&soon);
	ck_assert_ptr_nonnull(strstr(told, "waiting"));
	training.server.has_bucket = true;
	publish(0);
	held_step_free(expect_next(&unseen, 0));
}
END_TEST

START_TEST(a_step_that_is_not_published_yet_is_no_failure)
{
	const struct next_order wanted = {.has_wanted = true, .wanted = 0, .wait_ms = 5000};
	open_worker(_i);
	publish(0);
	atomic_store(&training.server.late, 2);
	expect_none(&unseen);
	struct held_step *const step = expect_next(&wanted, 0);
	expect_weights(step);
	held_step_free(step);
}
END_TEST

START_TEST(what_retention_removed_meanwhile_is_asked_for_again)
{
	open_worker(_i);
	publish(0);
	held_step_free(expect_next(&now, 0));
	publish(1);
	atomic_store(&training.server.lost, 2);
	struct held_step *const step = expect_next(&now, 1);
	expect_weights(step);
	held_step_free(step);
}
END_TEST

/* A flipped bit on the way: the download is proven and made again. */
START_TEST(a_delta_that_is_damaged_on_the_way_does_no_harm)
{
	open_worker(_i);
	publish(0);
	held_step_free(expect_next(&now, 0));
	publish(1);
	atomic_store(&training.server.flips, 2);
	struct held_step *const step = expect_next(&now, 1);
	expect_weights(step);
	held_step_free(step);
}
END_TEST

START_TEST(a_server_that_is_away_all_the_time_is_a_failure)
{
	const struct next_order soon = {.is_seen = true, .wait_ms = 500};
	open_worker(_i);
	publish(0);
	held_step_free(expect_next(&now, 0));
	session.remote_options.endpoint = remote.endpoint = "http://127.0.0.1:9";
	expect_failed(&now, ERROR_UPSTREAM);
	expect_failed(&soon, ERROR_UPSTREAM);
}
END_TEST

static void *test_next_step_cancel(void *argument)
{
	struct stop *const stop = argument;
	stop_sleep(NULL, 200);
	stop_give(stop, STOP_CANCELLED);
	return NULL;
}

static void expect_cancelled(const struct next_order *order)
{
	pthread_t thread;
	session.stop = session.remote_options.stop = stop_new();
	ck_assert_int_eq(pthread_create(&thread, NULL, test_next_step_cancel, session.stop), 0);
	expect_failed(order, ERROR_BUSY);
	expect_failed(order, ERROR_BUSY);
	pthread_join(thread, NULL);
	stop_free(session.stop);
	session.stop = session.remote_options.stop = NULL;
}

START_TEST(the_word_to_stop_ends_a_wait_and_the_next_call_goes_on)
{
	const struct next_order for_ever = {.is_seen = true, .wait_ms = -1};
	open_worker(_i);
	expect_cancelled(&for_ever); /* there is no run */
	publish(0);
	held_step_free(expect_next(&now, 0));
	expect_cancelled(&for_ever);
	publish(1);
	struct held_step *const step = expect_next(&now, 1);
	expect_weights(step);
	held_step_free(step);
}
END_TEST

static void test_next_step_stop_in_patch(void *owner, const struct progress_facts *facts)
{
	if (strncmp(facts->what, "making", 6) == 0)
		stop_give(owner, STOP_CANCELLED);
}

/* The weights are half old and half new: nothing is held, and nobody finds out by a failure. */
START_TEST(the_word_to_stop_in_the_middle_of_a_patch_costs_the_held_step)
{
	struct stop *const stop = stop_new();
	const struct progress_sink sink = {.show = test_next_step_stop_in_patch, .owner = stop};
	open_worker(MEMORY);
	publish(0);
	held_step_free(expect_next(&now, 0));
	publish(1);
	session.progress = &sink;
	session.stop = session.remote_options.stop = stop;
	expect_failed(&now, ERROR_BUSY);
	session.stop = session.remote_options.stop = NULL;
	session.progress = NULL;
	ck_assert(!stepper.folder.has_current);
	struct held_step *const step = expect_next(&now, 1);
	expect_weights(step);
	expect_facts(step, 0, 1);
	ck_assert_str_eq(told, "");
	held_step_free(step);
	stop_free(stop);
}
END_TEST

START_TEST(a_prefetch_outlives_the_call_and_brings_the_next_step)
{
	const struct next_order later = {.is_seen = true, .wait_ms = 20000};
	const struct next_order back = {.is_seen = true, .has_wanted = true, .wanted = 0};
	open_worker(FOLDER);
	params.prefetches = true;
	publish(0);
	held_step_free(expect_next(&now, 0));
	ck_assert_ptr_nonnull(stepper.prefetch);
	expect_none(&now);
	ck_assert_ptr_nonnull(stepper.prefetch);
	publish(1);
	struct held_step *step = expect_next(&later, 1);
	expect_weights(step);
	expect_facts(step, 1, 1);
	held_step_free(step);
	ck_assert_ptr_nonnull(stepper.prefetch);
	stepper.from_anchor = true;
	step = expect_next(&back, 0); /* nothing newer will come */
	expect_weights(step);
	held_step_free(step);
	held_step_free(expect_next(&now, 1));
	ck_assert_ptr_nonnull(stepper.prefetch); /* and closing ends it */
}
END_TEST

/* A file system that has no room where the first parent lies. */
static int no_room_in_first(const struct file_ops *ops, const char *path, struct file_space *out)
{
	const int result = file_system()->space(file_system(), path, out);
	(void)ops;
	if (strcmp(path, parents[0]) == 0)
		out->free = 1000;
	return result;
}

START_TEST(weights_go_elsewhere_where_the_memory_is_too_small)
{
	struct file_ops files = *file_system();
	open_worker(MEMORY);
	stepper_close(&stepper, true, true);
	char *const second = folder_files_join(training.scratch, "second");
	shell("mkdir second");
	parents[1] = _i == 0 ? second : NULL;
	files.space = no_room_in_first;
	session.files = &files;
	struct error err = {0};
	ck_assert_int_eq(stepper_open(&stepper, &params, &session, &err), 0);
	stepper_leave(&stepper);
	publish(0);
	if (_i == 0) {
		struct held_step *const step = expect_next(&now, 0);
		expect_weights(step);
		held_step_free(step);
		ck_assert_ptr_nonnull(strstr(told, "no room"));
		shell("! ls -d deltabucket-* 2>/dev/null");
	} else {
		expect_failed(&now, ERROR_NO_SPACE);
	}
	stepper_close(&stepper, true, true);
	shell("! ls -d second/deltabucket-* deltabucket-* 2>/dev/null");
	free(second);
}
END_TEST

static int sealed_fd; /* of the first swap; 0: there was none */

/* A file system on which a shard of the first generation can be read, and not be mapped for
 * writing. */
static int seal_first_shard(const struct file_ops *ops, const char *from, const char *to)
{
	const int result = file_system()->rename(file_system(), from, to);
	const char *const name = strrchr(to, '/');
	struct buffer bytes;
	struct error err;
	char link[64];
	(void)ops;
	if (strcmp(name, "/current") != 0 || sealed_fd > 0)
		return result;
	char *const shard = folder_files_join(to, "a.safetensors");
	buffer_init(&bytes, SIZE_MAX);
	ck_assert_int_eq(file_read_all(shard, &bytes, &err), 0);
	sealed_fd = memfd_create("shard", MFD_ALLOW_SEALING);
	ck_assert_int_eq(write(sealed_fd, bytes.data, bytes.len), (ssize_t)bytes.len);
	ck_assert_int_eq(fcntl(sealed_fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", sealed_fd);
	ck_assert(unlink(shard) == 0 && symlink(link, shard) == 0);
	buffer_release(&bytes);
	free(shard);
	return result;
}

START_TEST(weights_that_cannot_be_mapped_are_not_held)
{
	struct file_ops files = *file_system();
	struct error err = {0};
	struct held_step *step;
	sealed_fd = 0;
	open_worker(MEMORY);
	stepper_close(&stepper, true, true);
	files.rename = seal_first_shard;
	session.files = &files;
	ck_assert_int_eq(stepper_open(&stepper, &params, &session, &err), 0);
	stepper_leave(&stepper);
	publish(0);
	if (_i == 0) { /* the call tries once more itself */
		step = expect_next(&now, 0);
	} else {
		stepper.from_anchor = true; /* it has done that */
		expect_failed(&now, ERROR_DENIED);
		ck_assert(!stepper.folder.has_current);
		step = expect_next(&unseen, 0);
	}
	expect_weights(step);
	held_step_free(step);
	ck_assert_int_gt(sealed_fd, 0);
	close(sealed_fd);
}
END_TEST

Suite *test_next_step_suite(void);

Suite *test_next_step_suite(void)
{
	Suite *const suite = suite_create("next_step");
	TCase *const tests = tcase_create("next_step");
	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, each_step_comes_once_with_its_weights, 0, MODES);
	tcase_add_loop_test(
		tests, one_that_was_away_gets_the_newest_step_by_several_deltas, 0, MODES);
	tcase_add_loop_test(tests, one_that_was_away_for_long_gets_the_newest_step, 0, MODES);
	tcase_add_loop_test(tests, one_that_comes_late_begins_with_an_anchor, 0, MODES);
	tcase_add_loop_test(tests, a_wanted_step_comes_also_backwards, 0, MODES);
	tcase_add_loop_test(tests, a_rollback_is_obeyed_until_it_ends, 0, MODES);
	tcase_add_test(tests, an_earlier_step_that_is_damaged_is_fetched);
	tcase_add_loop_test(tests, one_that_starts_in_a_rollback_begins_there, 0, MODES);
	tcase_add_test(tests, what_the_folder_holds_comes_once_to_one_that_has_not_seen_it);
	tcase_add_test(tests, a_step_of_a_folder_stays_when_others_come);
	tcase_add_test(tests, a_step_in_memory_has_no_tensors_when_another_has_come);
	tcase_add_loop_test(tests, a_step_says_what_changed, 0, MODES);
	tcase_add_test(tests, changes_stay_while_the_step_is_held);
	tcase_add_loop_test(tests, a_flipped_byte_in_memory_is_cured_from_an_anchor, 0, 4);
	tcase_add_loop_test(tests, files_are_those_of_the_publisher, 0, MODES);
	tcase_add_loop_test(tests, a_run_that_does_not_exist_yet_is_no_failure, 0, MODES);
	tcase_add_loop_test(tests, a_step_that_is_not_published_yet_is_no_failure, 0, MODES);
	tcase_add_loop_test(tests, what_retention_removed_meanwhile_is_asked_for_again, 0, MODES);
	tcase_add_loop_test(tests, a_delta_that_is_damaged_on_the_way_does_no_harm, 0, MODES);
	tcase_add_loop_test(tests, a_server_that_is_away_all_the_time_is_a_failure, 0, MODES);
	tcase_add_loop_test(
		tests, the_word_to_stop_ends_a_wait_and_the_next_call_goes_on, 0, MODES);
	tcase_add_test(tests, the_word_to_stop_in_the_middle_of_a_patch_costs_the_held_step);
	tcase_add_test(tests, a_prefetch_outlives_the_call_and_brings_the_next_step);
	tcase_add_loop_test(tests, weights_go_elsewhere_where_the_memory_is_too_small, 0, 2);
	tcase_add_loop_test(tests, weights_that_cannot_be_mapped_are_not_held, 0, 2);
	suite_add_tcase(suite, tests);
	return suite;
}
