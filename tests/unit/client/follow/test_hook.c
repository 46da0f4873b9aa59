#include "tests/unit/unit.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "client/follow/hook.h"
#include "client/local/folder_files.h"
#include "client/terminal/interrupt.h"
#include "client/work/output.h"

static char *folder;

static void set_up(void)
{
	folder = unit_scratch_make();
}

static void tear_down(void)
{
	unit_scratch_remove(folder);
}

START_TEST(the_command_sees_the_variables)
{
	struct error err = {0};
	struct buffer text;
	int status = -1;
	char *const file = folder_files_join(folder, "out");
	setenv("DELTABUCKET_STEP", "of before", 1);
	setenv("DELTABUCKET_OTHER", "kept", 1);
	const struct hook_variable variables[] = {
		{"DELTABUCKET_STEP", "7"}, {"OUT", file}, {"DELTABUCKET_LABEL", "a \"b\" $c"}};
	const struct hook hook = {
		.command =
			"printf '%s|%s|%s' \"$DELTABUCKET_STEP\" \"$DELTABUCKET_LABEL\" \"$DELTABUCKET_OTHER\" > \"$OUT\"",
		.variables = variables,
		.count = 3,
	};
	ck_assert_int_eq(hook_run(&hook, NULL, &status, &err), 0);
	ck_assert_int_eq(status, 0);
	buffer_init(&text, 1024);
	ck_assert_int_eq(file_read_all(file, &text, &err), 0);
	ck_assert_str_eq(buffer_text(&text), "7|a \"b\" $c|kept");
	buffer_release(&text);
	free(file);
}
END_TEST

static const struct {
	const char *command;
	int status;
} CASES[] = {{"true", 0}, {"exit 3", 3}, {"kill -9 $$", 137}, {"/nonexistent/program", 127}};

START_TEST(its_end_is_reported)
{
	struct error err = {0};
	int status = -1;
	const struct hook hook = {.command = CASES[_i].command};
	ck_assert_int_eq(hook_run(&hook, NULL, &status, &err), 0);
	ck_assert_int_eq(status, CASES[_i].status);
}
END_TEST

/* A pipeline in the command ends as in any shell, although its parent ignores SIGPIPE. */
START_TEST(a_pipe_without_a_reader_ends_its_writer)
{
	struct error err = {0};
	int status = 0;
	const struct hook hook = {.command = "kill -PIPE $$; exit 0"};
	signal(SIGPIPE, SIG_IGN);
	ck_assert_int_eq(hook_run(&hook, NULL, &status, &err), 0);
	ck_assert_int_eq(status, 128 + SIGPIPE);
}
END_TEST

/* When programs read our lines from stdout, no output of the command comes between them. */
START_TEST(what_the_command_says_goes_where_it_is_wanted)
{
	struct error err = {0};
	int status = -1;
	int ends[2];
	char said[8] = "";
	const struct output json = {.json = true};
	const struct hook hook = {.command = "echo said", .output = &json};
	const int stream = _i == 0 ? STDOUT_FILENO : STDERR_FILENO;
	ck_assert_int_eq(pipe(ends), 0);
	const int before = dup(stream);
	ck_assert_int_eq(dup2(ends[1], stream), stream);
	ck_assert_int_eq(hook_run(&hook, NULL, &status, &err), 0);
	dup2(before, stream);
	close(ends[1]);
	ck_assert_int_eq(read(ends[0], said, sizeof said - 1), _i == 0 ? 0 : 5);
	ck_assert_str_eq(said, _i == 0 ? "" : "said\n");
	close(ends[0]);
	close(before);
}
END_TEST

static bool closes_within(int fd, int ms)
{
	struct pollfd waiting = {.fd = fd, .events = POLLIN};
	char byte;
	return poll(&waiting, 1, ms) == 1 && read(fd, &byte, 1) == 0;
}

/* Every process that the command started holds an end of the pipe as long as it lives. */
START_TEST(a_stop_reaches_all_that_the_command_started)
{
	struct error err = {0};
	int status = 0;
	int ends[2];
	const struct hook hook = {.command = "sleep 30 & sleep 30 & kill -TERM $PPID; wait"};
	struct stop *const stop = stop_new();
	struct interrupt *const interrupt = interrupt_start(stop);
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(hook_run(&hook, stop, &status, &err), 0);
	ck_assert_int_ne(status, 0);
	close(ends[1]);
	ck_assert_msg(closes_within(ends[0], 10000), "a child of the command goes on");
	close(ends[0]);
	interrupt_end(interrupt);
	stop_free(stop);
}
END_TEST

/* The script writes the file in the trap for SIGTERM; $FOLLOW is us. The shell around it has no
 * trap. The last case: the shell alone gets the signal, by somebody else, and the script works on. */
static const char *const STOPS[] = {
	"sh -c 'trap \"sleep 1; echo tidied >$OUT; exit\" TERM; kill -TERM $FOLLOW;"
	" while :; do sleep 0.02; done'; :",
	"(trap 'sleep 1; echo tidied >$OUT; exit' TERM; kill -TERM $FOLLOW;"
	" while :; do sleep 0.02; done) & wait",
	"sh -c 'sleep 1; echo tidied >$OUT' & kill -TERM $$",
};

START_TEST(what_is_told_to_stop_may_tidy_up)
{
	struct error err = {0};
	struct buffer text;
	int status = 0;
	char us[16];
	char *const file = folder_files_join(folder, "out");
	const struct hook_variable variables[] = {{"OUT", file}, {"FOLLOW", us}};
	const struct hook hook = {.command = STOPS[_i], .variables = variables, .count = 2};
	struct stop *const stop = stop_new();
	struct interrupt *const interrupt = interrupt_start(stop);
	snprintf(us, sizeof(us), "%d", (int)getpid());
	ck_assert_int_eq(hook_run(&hook, stop, &status, &err), 0);
	ck_assert_int_eq(status, 128 + SIGTERM);
	buffer_init(&text, 100);
	ck_assert_msg(file_read_all(file, &text, &err) == 0, "the script did not end");
	ck_assert_str_eq(buffer_text(&text), "tidied\n");
	buffer_release(&text);
	free(file);
	interrupt_end(interrupt);
	stop_free(stop);
}
END_TEST

/* A process that is left behind on purpose is not waited for, and the next call takes its end. */
START_TEST(what_a_command_leaves_behind_goes_on)
{
	struct error err = {0};
	int status = -1;
	int ends[2];
	const struct hook leaves = {.command = "sleep 1 &"};
	const struct hook next = {.command = "sleep 2"};
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(hook_run(&leaves, NULL, &status, &err), 0);
	ck_assert_int_eq(status, 0);
	close(ends[1]);
	ck_assert_msg(!closes_within(ends[0], 0), "it was waited for");
	ck_assert_int_eq(waitpid(-1, &status, WNOHANG), 0); /* it is our child now */
	ck_assert_int_eq(hook_run(&next, NULL, &status, &err), 0);
	ck_assert(closes_within(ends[0], 10000));
	ck_assert_int_eq(waitpid(-1, &status, WNOHANG), -1); /* nobody is */
	close(ends[0]);
}
END_TEST

/* As a parent may have left it. */
START_TEST(its_end_is_known_where_sigchld_is_ignored)
{
	struct error err = {0};
	int status = -1;
	const struct hook hook = {.command = "exit 3"};
	signal(SIGCHLD, SIG_IGN);
	ck_assert_int_eq(hook_run(&hook, NULL, &status, &err), 0);
	ck_assert_int_eq(status, 3);
}
END_TEST

Suite *test_hook_suite(void);
Suite *test_hook_suite(void)
{
	Suite *const suite = suite_create("hook");
	TCase *const tests = tcase_create("hook");
	tcase_set_timeout(tests, 30);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, the_command_sees_the_variables);
	tcase_add_loop_test(tests, its_end_is_reported, 0, sizeof CASES / sizeof CASES[0]);
	tcase_add_test(tests, a_pipe_without_a_reader_ends_its_writer);
	tcase_add_loop_test(tests, what_the_command_says_goes_where_it_is_wanted, 0, 2);
	tcase_add_test(tests, a_stop_reaches_all_that_the_command_started);
	tcase_add_loop_test(
		tests, what_is_told_to_stop_may_tidy_up, 0, sizeof STOPS / sizeof STOPS[0]);
	tcase_add_test(tests, what_a_command_leaves_behind_goes_on);
	tcase_add_test(tests, its_end_is_known_where_sigchld_is_ignored);
	suite_add_tcase(suite, tests);
	return suite;
}
