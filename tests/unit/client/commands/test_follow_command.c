/* The contents of a worker's folder: how many checkpoints, and which of their files. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/local/folder_files.h"
#include "tests/unit/client/training_fixture.h"

static struct training training;

static void set_up(void)
{
	training_start(&training);
}

static void tear_down(void)
{
	training_stop(&training);
}

static void follow_ok(const char *more)
{
	char words[4096];
	snprintf(words, sizeof words,
		"--quiet --retries 0 --threads 1 --run b/r --once %s --into %s/worker", more,
		training.scratch);
	training_expect_ok(command_fixture_run(command_follow, COMMAND_FOLLOW,
				   web_endpoint(training.server.web), words),
		"");
}

static void expect_there(const char *name, bool wanted)
{
	char *const path = folder_files_join(training.scratch, name);
	ck_assert_msg(file_exists(path) == wanted, "%s", name);
	free(path);
}

static const struct {
	const char *words;
	int kept; /* generations at the end, including the current one */
} keeps[] = {{"--keep 0", 1}, {"", 2}, {"--keep 2", 3}};

START_TEST(a_worker_keeps_one_older_checkpoint_unless_told)
{
	char words[4096];
	for (int i = 0; i < 4; i++) {
		training_step(&training, (unsigned)i, "state", "\"published\"");
		follow_ok(keeps[_i].words);
		snprintf(words, sizeof words,
			"[ $(find %s/worker -name a.safetensors | wc -l) = %d ]", training.scratch,
			i < keeps[_i].kept ? i + 1 : keeps[_i].kept);
		ck_assert_int_eq(system(words), 0);
	}
	training_expect_worker(&training, 3);
}
END_TEST

static int count_generations(void)
{
	struct error err = {0};
	char **names;
	size_t count;
	char *const folder = folder_files_join(training.scratch, "worker/generations");
	ck_assert_int_eq(file_list(folder, &names, &count, &err), 0);
	file_names_free(names, count);
	free(folder);
	return (int)count / 2; /* each generation has a sidecar */
}

/* The user needs the disk space now, not with the next step. */
START_TEST(a_worker_that_is_told_to_keep_less_removes_the_others_at_once)
{
	for (unsigned i = 0; i < 3; i++) {
		training_step(&training, i, "state", "\"published\"");
		follow_ok("--keep 2");
	}
	ck_assert_int_eq(count_generations(), 3);
	follow_ok("--keep 0");
	ck_assert_int_eq(count_generations(), 1);
	training_expect_worker(&training, 2);
}
END_TEST

static const char *const bad_urls[] = {"", "/b/r/steps/000000/anchor/a.safetensors"};

/* The objects that it fetches lie below the run. */
START_TEST(a_way_that_leads_elsewhere_is_refused)
{
	char words[4096];
	training_step(&training, 0, "state", "\"published\"");
	training.server.steps[0].forms[0].objects[0].url = span_text(bad_urls[_i]);
	snprintf(words, sizeof words,
		"--quiet --retries 0 --threads 1 --run b/r --once --into %s/worker",
		training.scratch);
	training_expect_failed(command_fixture_run(command_follow, COMMAND_FOLLOW,
				       web_endpoint(training.server.web), words),
		ERROR_UPSTREAM);
	expect_there("worker/current", false);
}
END_TEST

/* More steps than are applied at once. */
START_TEST(a_worker_that_was_away_for_long_takes_every_step)
{
	training_step(&training, 0, "state", "\"step\":0");
	follow_ok("");
	for (unsigned i = 1; i < RUN_SERVER_STEPS; i++)
		training_step(&training, i, "state", "\"published\"");
	follow_ok("");
	training_expect_worker(&training, RUN_SERVER_STEPS - 1);
}
END_TEST

/* An engine would look for every shard that an index names. */
START_TEST(a_worker_with_a_part_of_the_weights_gets_no_index_of_all)
{
	training_step(&training, 0, "state", "\"published\"");
	follow_ok("--tensors b");
	expect_there("worker/current/model.safetensors", true);
	expect_there("worker/current/config.json", true);
	expect_there("worker/current/model.safetensors.index.json", false);
	expect_there("worker/current/a.safetensors", false);
}
END_TEST

static void shell(const char *command)
{
	char words[4096];
	snprintf(words, sizeof words, "cd %s && %s", training.scratch, command);
	ck_assert_msg(system(words) == 0, "%s", command);
}

/* An engine reads all these files, so all of them are proven at the start, with tensors or
 * without. */
static const struct {
	const char *follow;
	const char *damage;
} damages[] = {
	{"", "printf x | dd of=worker/current/config.json bs=1 seek=3 conv=notrunc status=none"},
	{"", "rm worker/current/config.json"},
	{"", "printf ' ' >>worker/current/config.json"},
	{"", "printf X | dd of=worker/current/a.safetensors bs=1 seek=20 conv=notrunc status=none"},
	{"", "printf X | dd of=worker/current/a.safetensors bs=1 seek=1000 conv=notrunc status=none"},
	{"", "cp worker/current/a.safetensors worker/current/c.safetensors"},
	{"--tensors b",
		"printf x | dd of=worker/current/config.json bs=1 seek=3 conv=notrunc status=none"},
	{"--tensors b", "rm worker/current/config.json"},
	{"--tensors b", "rm worker/current/.schema"},
	{"--tensors b", "sed -i s/format/fxrmat/ worker/current/model.safetensors"},
};

START_TEST(what_is_damaged_when_a_worker_starts_is_mended)
{
	training_step(&training, 0, "state", "\"published\"");
	training_step(&training, 1, "state", "\"published\"");
	follow_ok(damages[_i].follow);
	shell("cp -r worker/current/ right && readlink worker/current >before");
	shell(damages[_i].damage);
	follow_ok(damages[_i].follow);
	shell("diff -r worker/current/ right");
	shell("! readlink worker/current | cmp -s - before");
}
END_TEST

/* The sidecar of an older version has only the tensors' digest. Files that an engine leaves in the
 * folder are not damage. */
START_TEST(what_is_whole_when_a_worker_starts_stays)
{
	static const char *const changes[] = {"true", "echo cache >worker/current/cache.json",
		"sed -i 's/,\"files\":.*]//' worker/generations/000000.json"};
	training_step(&training, 0, "state", "\"published\"");
	follow_ok("");
	shell("readlink worker/current >before");
	shell(changes[_i]);
	follow_ok("");
	shell("readlink worker/current | cmp - before");
}
END_TEST

static void follow_part(enum error_kind kind)
{
	char words[4096];
	snprintf(words, sizeof words,
		"--quiet --retries 0 --threads 1 --run b/r --once --tensors b --into %s/worker",
		training.scratch);
	struct command_result result = command_fixture_run(
		command_follow, COMMAND_FOLLOW, web_endpoint(training.server.web), words);
	if (kind != ERROR_NONE)
		training_expect_failed(result, kind);
	else
		training_expect_ok(result, "");
}

/* No worker has the whole step to prove its digest, so each tensor is proven by itself: in the
 * anchor and after a delta. */
START_TEST(a_tensor_that_is_not_what_the_step_says_is_not_held)
{
	training_step(&training, 0, "state", "\"published\"");
	if (_i == 1) {
		follow_part(ERROR_NONE);
		training_step(&training, 1, "state", "\"published\"");
	}
	struct span *const digests = &training.server.steps[_i].tensor_digests;
	uint8_t *const bytes = arena_take(training.server.arena, digests->len);
	memcpy(bytes, digests->data, digests->len);
	bytes[digests->len - 1] ^= 1; /* of b, the last one */
	digests->data = bytes;
	follow_part(ERROR_DIGEST_MISMATCH);
	expect_there("worker/current", _i == 1);
	expect_there("worker/generations/000001", false);
}
END_TEST

/* Other programs may publish like this. */
START_TEST(a_step_without_digests_of_tensors_has_no_parts)
{
	training_step(&training, 0, "state", "\"published\"");
	training.server.steps[0].tensor_digests = (struct span){0};
	follow_part(ERROR_UNSUPPORTED);
	expect_there("worker/current", false);
	training_expect_worker(&training, 0);
}
END_TEST

Suite *test_follow_command_suite(void);

Suite *test_follow_command_suite(void)
{
	Suite *const suite = suite_create("follow_command");
	TCase *const tests = tcase_create("follow_command");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, a_worker_keeps_one_older_checkpoint_unless_told, 0,
		sizeof keeps / sizeof keeps[0]);
	tcase_add_test(tests, a_worker_that_is_told_to_keep_less_removes_the_others_at_once);
	tcase_add_loop_test(tests, a_way_that_leads_elsewhere_is_refused, 0,
		sizeof bad_urls / sizeof bad_urls[0]);
	tcase_add_test(tests, a_worker_that_was_away_for_long_takes_every_step);
	tcase_add_test(tests, a_worker_with_a_part_of_the_weights_gets_no_index_of_all);
	tcase_add_loop_test(tests, what_is_damaged_when_a_worker_starts_is_mended, 0,
		sizeof damages / sizeof damages[0]);
	tcase_add_loop_test(tests, what_is_whole_when_a_worker_starts_stays, 0, 3);
	tcase_add_loop_test(tests, a_tensor_that_is_not_what_the_step_says_is_not_held, 0, 2);
	tcase_add_test(tests, a_step_without_digests_of_tensors_has_no_parts);
	suite_add_tcase(suite, tests);
	return suite;
}
