/* A trainer writes into its checkpoint while it is being published. Neither this call nor the next
 * one may make a step of a delta that was read half before and half after the write. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/local/folder_files.h"
#include "tests/unit/client/training_fixture.h"

static struct training training;

/* The real table, but the trainer writes before the first folder is made whose path contains
 * `before`. */
struct writing {
	struct file_ops ops; /* first */
	const char *before;
	unsigned iteration;
	bool is_done;
};

static void set_up(void)
{
	training_start(&training);
}

static void tear_down(void)
{
	training_stop(&training);
}

/* Writes in place: the file keeps its inode. */
static void overwrite(const char *name, unsigned iteration)
{
	struct buffer bytes;
	struct error err = {0};
	char *const fresh = folder_files_join(training.scratch, "fresh.safetensors");
	char *const path = folder_files_join(training.scratch, name);
	training_put_shard(&training, "fresh.safetensors", "a", iteration);
	buffer_init(&bytes, 100000);
	ck_assert_int_eq(file_read_all(fresh, &bytes, &err), 0);
	const int fd = open(path, O_WRONLY);
	ck_assert_int_eq(file_write_at(file_system(), fd, buffer_span(&bytes), 0, path, &err), 0);
	close(fd);
	buffer_release(&bytes);
	free(path);
	free(fresh);
}

static int make_folder(const struct file_ops *ops, const char *path, mode_t mode)
{
	struct writing *const writing = (struct writing *)ops->state;
	if (!writing->is_done && strstr(path, writing->before) != NULL) {
		writing->is_done = true;
		overwrite("trained/a.safetensors", writing->iteration);
	}
	return file_system()->mkdir(file_system(), path, mode);
}

static struct command_result publish_while_writing(struct writing *writing)
{
	char words[4096];
	snprintf(words, sizeof words,
		"--json --quiet --retries 0 --threads 1 --run b/r --state %s/state %s/trained",
		training.scratch, training.scratch);
	writing->ops = *file_system();
	writing->ops.mkdir = make_folder;
	writing->ops.state = writing;
	return command_fixture_run_on(&writing->ops, command_publish, COMMAND_PUBLISH,
		web_endpoint(training.server.web), words);
}

static bool has_step_folder(void)
{
	char *const path = folder_files_join(training.scratch, "state/step-000001");
	const bool found = file_exists(path);
	free(path);
	return found;
}

/* It changes between the pass that hashes the checkpoint and the one that compares it with the step
 * before. */
START_TEST(a_checkpoint_that_changes_meanwhile_is_no_step)
{
	training_step(&training, 0, "state", "\"step\":0");
	training_write(&training, 1);
	struct writing writing = {.before = "step-000001/.", .iteration = 4};
	struct command_result result = publish_while_writing(&writing);
	/* if the file system can share bytes, a copy was taken first and is the step */
	const bool shares_bytes = result.status == 0;
	ck_assert(writing.is_done);
	if (!shares_bytes) {
		training_expect_failed(result, ERROR_INVALID);
		ck_assert(!has_step_folder());
		ck_assert_uint_eq(training.server.count, 1);
	}
	training_step(&training, 1, "state", "\"step\":1");
	training_expect_worker(&training, 1);
}
END_TEST

/* The delta that a call left which could not publish: whole or damaged. */
static void leave_delta(void)
{
	training_step(&training, 0, "state", "\"step\":0");
	training_write(&training, 1);
	training.server.refusals = 1;
	training_expect_failed(training_publish(&training, "", "state"), ERROR_NO_SPACE);
}

/* Flips bits in the payload of the delta. */
static void spoil_delta(void)
{
	struct error err = {0};
	struct buffer bytes;
	struct folder_files files = {0};
	char *const folder = folder_files_join(training.scratch, "state/step-000001/delta");
	ck_assert_int_eq(folder_files_read(folder, &files, &err), 0);
	ck_assert_uint_gt(files.count, 0);
	const char *const path = files.files[0].path;
	buffer_init(&bytes, 100000);
	ck_assert_str_eq(strrchr(path, '.'), ".safetensors");
	ck_assert_int_eq(file_read_all(path, &bytes, &err), 0);
	for (size_t i = bytes.len - 40; i < bytes.len; i++) /* some of the last are padding */
		bytes.data[i] ^= 1;
	ck_assert_int_eq(file_place(file_system(), path, buffer_span(&bytes), 0600, &err), 0);
	buffer_release(&bytes);
	folder_files_release(&files);
	free(folder);
}

/* An earlier call was killed after it made the delta and before it checked that the checkpoint had
 * not changed. */
START_TEST(a_delta_that_nobody_has_proven_is_made_again)
{
	struct error err = {0};
	leave_delta();
	spoil_delta();
	char *const proven = folder_files_join(training.scratch, "state/step-000001/proven");
	ck_assert_int_eq(file_remove_tree(file_system(), proven, &err), 0);
	training_expect_ok(training_publish(&training, "", "state"), "\"step\":1");
	training_expect_worker(&training, 1);
	free(proven);
}
END_TEST

START_TEST(a_delta_that_was_proven_serves_the_next_call)
{
	leave_delta();
	web_forget_trace(training.server.web);
	training_expect_ok(training_publish(&training, "", "state"), "\"step\":1");
	ck_assert_ptr_eq(strstr(web_trace(training.server.web), "PUT /b/"), NULL);
	training_expect_worker(&training, 1);
}
END_TEST

Suite *test_publish_torn_suite(void);
Suite *test_publish_torn_suite(void)
{
	Suite *const suite = suite_create("publish_torn");
	TCase *const tcase = tcase_create("publish_torn");
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, a_checkpoint_that_changes_meanwhile_is_no_step);
	tcase_add_test(tcase, a_delta_that_nobody_has_proven_is_made_again);
	tcase_add_test(tcase, a_delta_that_was_proven_serves_the_next_call);
	suite_add_tcase(suite, tcase);
	return suite;
}
