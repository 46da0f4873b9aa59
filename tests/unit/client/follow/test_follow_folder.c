#include "tests/unit/unit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "client/follow/follow_folder.h"
#include "client/local/folder_files.h"

static const char ENDPOINT[] = "https://host:9000";
static char *scratch;
static char *path;

static void set_up(void)
{
	scratch = unit_scratch_make();
	path = folder_files_join(scratch, "into");
}

static void tear_down(void)
{
	free(path);
	unit_scratch_remove(scratch);
}

static void open_folder(struct follow_folder *folder)
{
	struct error err = {0};
	ck_assert_msg(follow_folder_open(folder, file_system(), path, ENDPOINT, "b/r", &err) == 0,
		"%s", err.text);
}

static void put(const char *file, const char *text)
{
	struct error err = {0};
	ck_assert_int_eq(file_make_parent(file_system(), file, 0755, &err), 0);
	ck_assert_int_eq(file_publish(file_system(), file, span_text(text), 0600, &err), 0);
}

static bool exists(const char *name)
{
	char *const file = folder_files_join(path, name);
	const bool found = file_exists(file);
	free(file);
	return found;
}

/* Makes a generation as follower.c does, and swaps to it. The weights are the step's number. */
static void swap_to(struct follow_folder *folder, uint64_t step)
{
	struct error err = {0};
	char *name;
	char *out;
	char text[32];
	follow_folder_next(folder, step, &name, &out);
	char *const file = folder_files_join(out, "model.safetensors");
	snprintf(text, sizeof text, "%llu", (unsigned long long)step);
	put(file, text);
	const struct proven_files none = {0};
	struct follow_swap swap = {
		.name = name, .step = step, .label = "epoch \"1\"", .files = &none};
	memset(swap.digest.bytes, (int)step, sizeof swap.digest.bytes);
	swap.held = swap.digest;
	ck_assert_msg(follow_folder_swap(folder, &swap, &err) == 0, "%s", err.text);
	free(file);
	free(out);
	free(name);
}

static void check_current(const char *expected)
{
	struct error err = {0};
	struct buffer text;
	char *const file = folder_files_join(path, "current/model.safetensors");
	buffer_init(&text, 1024);
	ck_assert_msg(file_read_all(file, &text, &err) == 0, "%s", err.text);
	ck_assert_str_eq(buffer_text(&text), expected);
	buffer_release(&text);
	free(file);
}

START_TEST(what_is_held_survives_a_restart)
{
	struct follow_folder folder;
	open_folder(&folder);
	ck_assert(!folder.has_current);
	swap_to(&folder, 7);
	swap_to(&folder, 9);
	follow_folder_close(&folder);
	follow_folder_close(&folder);
	open_folder(&folder);
	ck_assert(folder.has_current);
	ck_assert_uint_eq(folder.current.step, 9);
	ck_assert_str_eq(folder.current.label, "epoch \"1\"");
	ck_assert_uint_eq(folder.current.digest.bytes[3], 9);
	check_current("9");
	follow_folder_close(&folder);
}
END_TEST

/* The follower was killed after the swap of the link and before the state was written: the link
 * decides. */
START_TEST(the_link_is_the_truth)
{
	struct follow_folder folder;
	open_folder(&folder);
	swap_to(&folder, 7);
	char *const state = folder_files_join(path, ".deltabucket");
	struct buffer old;
	struct error err = {0};
	buffer_init(&old, 65536);
	ck_assert_int_eq(file_read_all(state, &old, &err), 0);
	swap_to(&folder, 8);
	follow_folder_close(&folder);
	put(state, buffer_text(&old));
	open_folder(&folder);
	ck_assert_uint_eq(folder.current.step, 8);
	follow_folder_close(&folder);
	buffer_release(&old);
	free(state);
}
END_TEST

START_TEST(half_made_generations_are_removed)
{
	struct follow_folder folder;
	open_folder(&folder);
	swap_to(&folder, 7);
	follow_folder_close(&folder);
	char *const half = folder_files_join(path, "generations/000008/model.safetensors");
	char *const orphan = folder_files_join(path, "generations/000006.json");
	put(half, "half");
	put(orphan, "{}");
	open_folder(&folder);
	ck_assert(!exists("generations/000008"));
	ck_assert(!exists("generations/000006.json"));
	ck_assert(exists("generations/000007/model.safetensors"));
	check_current("7");
	follow_folder_close(&folder);
	free(orphan);
	free(half);
}
END_TEST

START_TEST(a_dangling_or_foreign_link_is_nothing)
{
	static const char *const TARGETS[] = {
		"generations/000099", "/etc", "generations/../..", "elsewhere", "generations/"};
	struct follow_folder folder;
	open_folder(&folder);
	follow_folder_close(&folder);
	char *const link = folder_files_join(path, "current");
	ck_assert_int_eq(symlink(TARGETS[_i], link), 0);
	open_folder(&folder);
	ck_assert(!folder.has_current);
	swap_to(&folder, 3);
	check_current("3");
	follow_folder_close(&folder);
	free(link);
}
END_TEST

START_TEST(older_generations_are_trimmed_by_age_not_number)
{
	struct follow_folder folder;
	struct error err = {0};
	open_folder(&folder);
	swap_to(&folder, 9);
	swap_to(&folder, 3); /* back to an earlier step, as --step allows */
	swap_to(&folder, 5);
	ck_assert_int_eq(follow_folder_trim(&folder, 1, &err), 0);
	ck_assert(!exists("generations/000009"));
	ck_assert(!exists("generations/000009.json"));
	ck_assert(exists("generations/000003"));
	ck_assert(exists("generations/000005"));
	ck_assert_int_eq(follow_folder_trim(&folder, 0, &err), 0);
	ck_assert(!exists("generations/000003"));
	check_current("5");
	follow_folder_close(&folder);
}
END_TEST

/* A generation is younger than all before it, whatever the number of its step. */
START_TEST(the_youngest_stay)
{
	static const uint64_t made[] = {2, 5, 3, 4};
	struct follow_folder folder;
	struct error err = {0};
	open_folder(&folder);
	for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
		swap_to(&folder, made[i]);
	ck_assert_int_eq(follow_folder_trim(&folder, 2, &err), 0);
	ck_assert(!exists("generations/000002"));
	ck_assert(exists("generations/000003") && exists("generations/000005"));
	ck_assert_int_eq(follow_folder_trim(&folder, 1, &err), 0);
	ck_assert(exists("generations/000003") && !exists("generations/000005"));
	check_current("4");
	follow_folder_close(&folder);
}
END_TEST

/* The command is told whether the tensors changed, so that an engine need not load them again. */
START_TEST(the_same_weights_are_told_from_others)
{
	struct follow_folder folder;
	struct error err = {0};
	open_folder(&folder);
	swap_to(&folder, 1);
	ck_assert(!follow_folder_has_taken(&folder, "load"));
	ck_assert_int_eq(follow_folder_set_executed(&folder, "load", &err), 0);
	ck_assert(follow_folder_has_taken(&folder, "load"));
	ck_assert(!follow_folder_has_taken(&folder, "another"));
	swap_to(&folder, 1); /* made again */
	ck_assert(follow_folder_has_taken(&folder, "load"));
	swap_to(&folder, 2);
	ck_assert(!follow_folder_has_taken(&folder, "load"));
	swap_to(&folder, 1); /* back, and no command was started for 2 */
	ck_assert(follow_folder_has_taken(&folder, "load"));
	follow_folder_close(&folder);
	open_folder(&folder);
	ck_assert(follow_folder_has_taken(&folder, "load"));
	ck_assert_int_eq(follow_folder_set_executed(&folder, "load", &err), 0);
	ck_assert_int_eq(follow_folder_forget_taken(&folder, &err), 0);
	ck_assert(!follow_folder_has_taken(&folder, "load"));
	ck_assert(!follow_folder_has_executed(&folder, "load"));
	follow_folder_close(&folder);
	open_folder(&folder);
	ck_assert(!follow_folder_has_taken(&folder, "load"));
	ck_assert(!follow_folder_has_executed(&folder, "load"));
	follow_folder_close(&folder);
}
END_TEST

/* The root folder of a file system contains it. */
START_TEST(a_folder_with_lost_and_found_is_empty)
{
	struct follow_folder folder;
	struct error err = {0};
	char *const lost = folder_files_join(path, "lost+found");
	ck_assert_int_eq(file_make_folder(file_system(), lost, 0700, &err), 0);
	open_folder(&folder);
	swap_to(&folder, 1);
	follow_folder_close(&folder);
	ck_assert(file_exists(lost));
	free(lost);
}
END_TEST

START_TEST(a_step_can_be_made_again)
{
	struct follow_folder folder;
	open_folder(&folder);
	swap_to(&folder, 7);
	follow_folder_distrust(&folder);
	ck_assert(!folder.has_current);
	check_current("7"); /* until the next swap */
	swap_to(&folder, 7);
	ck_assert_str_eq(folder.current.name, "000007.2");
	check_current("7");
	follow_folder_close(&folder);
}
END_TEST

/* A kill after the link was made and before it was renamed leaves this. */
START_TEST(a_link_that_was_left_is_no_hindrance)
{
	struct follow_folder folder;
	char left[4200];
	open_folder(&folder);
	swap_to(&folder, 1);
	snprintf(left, sizeof left, "%s/current.new", path);
	ck_assert_int_eq(symlink("generations/000001", left), 0);
	swap_to(&folder, 2);
	check_current("2");
	follow_folder_close(&folder);
}
END_TEST

static bool has_executed(const struct follow_folder *folder)
{
	return follow_folder_has_executed(folder, "load");
}

/* --exec runs for every swap, even when the process died between the swap and the command. */
START_TEST(what_was_executed_is_remembered)
{
	struct follow_folder folder;
	struct error err = {0};
	open_folder(&folder);
	ck_assert(!has_executed(&folder));
	swap_to(&folder, 1);
	ck_assert(!has_executed(&folder));
	ck_assert_int_eq(follow_folder_set_executed(&folder, "load", &err), 0);
	follow_folder_close(&folder);
	open_folder(&folder);
	ck_assert(has_executed(&folder));
	ck_assert(!follow_folder_has_executed(&folder, "another"));
	swap_to(&folder, 2);
	follow_folder_close(&folder);
	open_folder(&folder);
	ck_assert(!has_executed(&folder));
	follow_folder_close(&folder);
}
END_TEST

/* A state of version 0.1.0 does not name the command: it counts for any command. */
START_TEST(older_folders_do_not_run_a_command_again)
{
	struct follow_folder folder;
	open_folder(&folder);
	swap_to(&folder, 1);
	follow_folder_close(&folder);
	char *const state = folder_files_join(path, ".deltabucket");
	put(state,
		"{\"version\":1,\"endpoint\":\"https://host:9000\",\"run\":\"b/r\",\"executed\":\"000001\"}\n");
	free(state);
	open_folder(&folder);
	ck_assert(has_executed(&folder));
	swap_to(&folder, 2);
	ck_assert(!has_executed(&folder));
	follow_folder_close(&folder);
}
END_TEST

START_TEST(foreign_folders_are_refused_and_left_alone)
{
	struct follow_folder folder;
	struct error err = {0};
	char *const foreign = folder_files_join(path, "model.safetensors");
	put(foreign, "precious");
	ck_assert_int_eq(
		follow_folder_open(&folder, file_system(), path, ENDPOINT, "b/r", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
	ck_assert(file_exists(foreign));
	ck_assert(!exists(".deltabucket"));
	ck_assert(!exists("generations"));
	free(foreign);
}
END_TEST

/* The follower was killed during the very first write of the state, and during a later one. */
START_TEST(a_killed_write_does_not_make_the_folder_foreign)
{
	struct follow_folder folder;
	char *const temporary = folder_files_join(path, ".deltabucket.tmp-0123456789abcdef");
	for (int turn = 0; turn < 2; turn++) {
		put(temporary, "{\"version\"");
		open_folder(&folder);
		ck_assert(!file_exists(temporary));
		follow_folder_close(&folder);
	}
	free(temporary);
}
END_TEST

static void remove_state(void)
{
	char *const state = folder_files_join(path, ".deltabucket");
	ck_assert_int_eq(unlink(state), 0);
	free(state);
}

/* The sidecar of each generation also names endpoint and run. */
START_TEST(a_folder_without_its_state_is_known_by_its_generations)
{
	struct follow_folder folder;
	struct error err = {0};
	open_folder(&folder);
	swap_to(&folder, 7);
	swap_to(&folder, 8);
	follow_folder_close(&folder);
	remove_state();
	ck_assert_int_eq(
		follow_folder_open(&folder, file_system(), path, ENDPOINT, "b/other", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
	open_folder(&folder);
	ck_assert_uint_eq(folder.current.step, 8);
	ck_assert(exists(".deltabucket") && exists("generations/000007"));
	follow_folder_close(&folder);
}
END_TEST

static const struct {
	const char *name;
	bool is_own;
} leftovers[] = {
	{"incoming/made-a/model.safetensors", true},
	{"incoming/made-b.file", true},
	{"incoming/.part-0123456789abcdef", true},
	{"incoming/000008-anchor-000000-0123456789ab/files/model.safetensors", true},
	{"incoming/000008-delta-000007-0123456789ab/parts/0", true},
	{"incoming/000008-delta-000007-0123456789ab.old", false},
	{"incoming/000008-notes-000007-0123456789ab", false},
	{"incoming/precious", false},
	{"generations/000007/precious", false},
	{"generations/precious.json", false},
	{"current/precious", false},
	{"current", false},
};

/* A folder that is removed while a follower writes into it looks like this. */
START_TEST(what_lies_in_a_folder_without_state_is_taken_for_own_only_when_it_is)
{
	struct follow_folder folder;
	struct error err = {0};
	char *const left = folder_files_join(path, leftovers[_i].name);
	put(left, "{\"run\":\"b/r\"}");
	const int result = follow_folder_open(&folder, file_system(), path, ENDPOINT, "b/r", &err);
	ck_assert_msg(result == (leftovers[_i].is_own ? 0 : -1), "%s", err.text);
	ck_assert(leftovers[_i].is_own || err.kind == ERROR_EXISTS);
	ck_assert(file_exists(left));
	ck_assert(exists(".deltabucket") == leftovers[_i].is_own);
	if (result == 0)
		follow_folder_close(&folder);
	free(left);
}
END_TEST

/* No sidecar can have that name and ".json": it would be too long for the file system. */
START_TEST(a_leftover_with_the_longest_name_is_removed)
{
	struct follow_folder folder;
	struct error err = {0};
	char name[NAME_MAX + 1];
	memset(name, 'x', NAME_MAX);
	name[NAME_MAX] = '\0';
	open_folder(&folder);
	swap_to(&folder, 1);
	char *const generations = folder_files_join(path, "generations");
	char *const leftover = folder_files_join(generations, name);
	ck_assert_int_eq(file_make_folder(file_system(), leftover, 0755, &err), 0);
	swap_to(&folder, 2);
	follow_folder_close(&folder);
	open_folder(&folder);
	ck_assert(!file_exists(leftover) && exists("generations/000001"));
	follow_folder_close(&folder);
	free(leftover);
	free(generations);
}
END_TEST

START_TEST(a_folder_that_was_removed_is_noticed)
{
	static const char *const REMOVALS[] = {
		"rm -r into", "rm -r into/*", "mv into old && mkdir -p into/generations"};
	struct follow_folder folder;
	char command[9000];
	open_folder(&folder);
	swap_to(&folder, 1);
	ck_assert(follow_folder_is_there(&folder));
	snprintf(command, sizeof command, "cd %s && %s", scratch, REMOVALS[_i]);
	ck_assert_int_eq(system(command), 0);
	ck_assert(!follow_folder_is_there(&folder));
	follow_folder_close(&folder);
	open_folder(&folder);
	swap_to(&folder, 1);
	check_current("1");
	follow_folder_close(&folder);
}
END_TEST

START_TEST(another_runs_folder_is_refused)
{
	struct follow_folder folder;
	struct error err = {0};
	open_folder(&folder);
	follow_folder_close(&folder);
	ck_assert_int_eq(
		follow_folder_open(&folder, file_system(), path, ENDPOINT, "b/other", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
	ck_assert_int_eq(
		follow_folder_open(&folder, file_system(), path, "http://elsewhere", "b/r", &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
}
END_TEST

START_TEST(one_follower_at_a_time)
{
	struct follow_folder folder;
	struct follow_folder second;
	struct error err = {0};
	open_folder(&folder);
	ck_assert_int_eq(
		follow_folder_open(&second, file_system(), path, ENDPOINT, "b/r", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	follow_folder_close(&folder);
}
END_TEST

START_TEST(a_damaged_state_is_refused)
{
	struct follow_folder folder;
	struct error err = {0};
	open_folder(&folder);
	follow_folder_close(&folder);
	char *const state = folder_files_join(path, ".deltabucket");
	put(state, "{\"version\":1");
	ck_assert_int_eq(
		follow_folder_open(&folder, file_system(), path, ENDPOINT, "b/r", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	free(state);
}
END_TEST

Suite *test_follow_folder_suite(void);
Suite *test_follow_folder_suite(void)
{
	Suite *const suite = suite_create("follow_folder");
	TCase *const tests = tcase_create("follow_folder");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, what_is_held_survives_a_restart);
	tcase_add_test(tests, the_link_is_the_truth);
	tcase_add_test(tests, half_made_generations_are_removed);
	tcase_add_loop_test(tests, a_dangling_or_foreign_link_is_nothing, 0, 5);
	tcase_add_test(tests, older_generations_are_trimmed_by_age_not_number);
	tcase_add_test(tests, the_youngest_stay);
	tcase_add_test(tests, the_same_weights_are_told_from_others);
	tcase_add_test(tests, a_folder_with_lost_and_found_is_empty);
	tcase_add_test(tests, a_step_can_be_made_again);
	tcase_add_test(tests, a_link_that_was_left_is_no_hindrance);
	tcase_add_test(tests, what_was_executed_is_remembered);
	tcase_add_test(tests, older_folders_do_not_run_a_command_again);
	tcase_add_test(tests, foreign_folders_are_refused_and_left_alone);
	tcase_add_test(tests, a_killed_write_does_not_make_the_folder_foreign);
	tcase_add_test(tests, a_folder_without_its_state_is_known_by_its_generations);
	tcase_add_loop_test(tests,
		what_lies_in_a_folder_without_state_is_taken_for_own_only_when_it_is, 0,
		sizeof leftovers / sizeof leftovers[0]);
	tcase_add_test(tests, a_leftover_with_the_longest_name_is_removed);
	tcase_add_loop_test(tests, a_folder_that_was_removed_is_noticed, 0, 3);
	tcase_add_test(tests, another_runs_folder_is_refused);
	tcase_add_test(tests, one_follower_at_a_time);
	tcase_add_test(tests, a_damaged_state_is_refused);
	suite_add_tcase(suite, tests);
	return suite;
}
