#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "client/terminal/options.h"

static char *folder;

static void set_up(void)
{
	folder = unit_scratch_make();
	unsetenv("DELTABUCKET_ENDPOINT");
	unsetenv("DELTABUCKET_TOKEN");
	unsetenv("DELTABUCKET_CA");
	unsetenv("DELTABUCKET_PROFILE");
}

static void tear_down(void)
{
	unit_scratch_remove(folder);
}

static int parse(struct options *options, enum command_bit command, const char *const *words,
	struct error *err)
{
	size_t count = 0;
	while (words[count] != NULL)
		count++;
	return options_parse(options, command, (char *const *)(const void *)words, count, err);
}

START_TEST(flags_and_arguments_mix)
{
	struct options options;
	struct error err = {0};
	const char *const words[] = {"--run", "b/r", "model", "--step=7", "--metadata", "a=1",
		"--metadata", "b=x=y", "--json", NULL};
	ck_assert_msg(parse(&options, COMMAND_PUBLISH, words, &err) == 0, "%s", err.text);
	ck_assert_str_eq(options.run, "b/r");
	ck_assert(options.step.given);
	ck_assert_uint_eq(options.step.value, 7);
	ck_assert_uint_eq(options.argument_count, 1);
	ck_assert_str_eq(options.arguments[0], "model");
	ck_assert_uint_eq(options.metadata.count, 2);
	ck_assert_str_eq(options.metadata.items[1], "b=x=y");
	ck_assert(options.json);
	ck_assert(!options.keep_steps.given);
}
END_TEST

START_TEST(seeds_are_paths_of_any_form)
{
	struct options options;
	struct error err = {0};
	const char *const words[] = {"--seed", "a=b", "--seed=/c", "b/k", "--plain", NULL};
	ck_assert_int_eq(parse(&options, COMMAND_GET, words, &err), 0);
	ck_assert_uint_eq(options.seeds.count, 2);
	ck_assert_str_eq(options.seeds.items[0], "a=b");
	ck_assert_str_eq(options.seeds.items[1], "/c");
	ck_assert(options.plain);
	const char *const empty[] = {"--seed=", NULL};
	ck_assert_int_eq(parse(&options, COMMAND_GET, empty, &err), -1);
	ck_assert_int_eq(parse(&options, COMMAND_PUT, words, &err), -1);
}
END_TEST

START_TEST(one_name_may_mean_two_things)
{
	struct options options;
	struct error err = {0};
	const char *const inspect[] = {"--tensors", "path", NULL};
	ck_assert_int_eq(parse(&options, COMMAND_INSPECT, inspect, &err), 0);
	ck_assert(options.tensors);
	ck_assert_uint_eq(options.argument_count, 1);
	const char *const follow[] = {"--tensors", "model.*", NULL};
	ck_assert_int_eq(parse(&options, COMMAND_FOLLOW, follow, &err), 0);
	ck_assert_str_eq(options.glob, "model.*");
	ck_assert_uint_eq(options.argument_count, 0);
}
END_TEST

START_TEST(a_dash_is_an_argument_and_two_end_the_flags)
{
	struct options options;
	struct error err = {0};
	const char *const words[] = {"-", "--", "--json", "b/k", NULL};
	ck_assert_int_eq(parse(&options, COMMAND_PUT, words, &err), 0);
	ck_assert_uint_eq(options.argument_count, 3);
	ck_assert_str_eq(options.arguments[0], "-");
	ck_assert_str_eq(options.arguments[1], "--json");
	ck_assert(!options.json);
}
END_TEST

START_TEST(common_flags_may_stand_before_the_command)
{
	static const struct {
		const char *words[6];
		size_t at;
	} cases[] = {{{"ls"}, 0}, {{"--json", "ls", "-r"}, 1},
		{{"--endpoint", "ls", "-q", "put"}, 3}, {{"--token=x", "rm"}, 1}, {{"--json"}, 1},
		{{"--ca"}, 1}, {{NULL}, 0}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct error err = {0};
		size_t count = 0;
		size_t at = 99;
		while (cases[i].words[count] != NULL)
			count++;
		ck_assert_int_eq(options_find_command((char *const *)(const void *)cases[i].words,
					 count, &at, &err),
			0);
		ck_assert_uint_eq(at, cases[i].at);
	}
	struct error err = {0};
	size_t at;
	const char *const own[] = {"--recursive", "ls"};
	ck_assert_int_eq(options_find_command((char *const *)(const void *)own, 2, &at, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "--recursive stands before the command"));
}
END_TEST

START_TEST(times_may_have_units)
{
	struct options options;
	struct error err = {0};
	const char *const words[] = {"--ttl", "2h", NULL};
	ck_assert_int_eq(parse(&options, COMMAND_PINS, words, &err), 0);
	ck_assert_uint_eq(options.ttl.value, 7200);
	const char *const wrong[] = {"--ttl", "2GiB", NULL};
	ck_assert_int_eq(parse(&options, COMMAND_PINS, wrong, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "10min"));
}
END_TEST

START_TEST(letters_are_short_names)
{
	struct options options;
	struct error err = {0};
	const char *const words[] = {"-r", "-q", "b", NULL};
	ck_assert_int_eq(parse(&options, COMMAND_LS, words, &err), 0);
	ck_assert(options.recursive && options.quiet);
}
END_TEST

START_TEST(letters_may_be_joined)
{
	struct options options;
	struct error err = {0};
	const char *const words[] = {"-rlq", "b", NULL};
	ck_assert_int_eq(parse(&options, COMMAND_LS, words, &err), 0);
	ck_assert(options.recursive && options.is_long && options.quiet && !options.help);
	ck_assert_uint_eq(options.argument_count, 1);
	size_t at = 9;
	const char *const before[] = {"-qh", "ls"};
	ck_assert_int_eq(
		options_find_command((char *const *)(const void *)before, 2, &at, &err), 0);
	ck_assert_uint_eq(at, 1);
	const char *const own[] = {"-qr", "ls"};
	ck_assert_int_eq(options_find_command((char *const *)(const void *)own, 2, &at, &err), -1);
}
END_TEST

static const struct {
	enum command_bit command;
	const char *words[4];
	const char *says;
} REFUSED[] = {
	{COMMAND_LS, {"-rx", NULL}, "no flag -rx"},
	{COMMAND_LS, {"-rf", NULL}, "no flag -rf"}, /* f is another command's */
	{COMMAND_LS, {"-long", NULL}, "did you mean --long?"},
	{COMMAND_LS, {"-rq=1", NULL}, "no flag -rq"},
	{COMMAND_WATCH, {"--run", "b/r", NULL},
		"no flag --run; write the run without it: BUCKET/RUN"},
	{COMMAND_STEPS, {"--run=b/r", NULL}, "write the run without it"},
	{COMMAND_LS, {"--recursve", NULL}, "did you mean --recursive?"},
	{COMMAND_PUBLISH, {"--frob", NULL}, "--frob"},
	{COMMAND_PUBLISH, {"--once", NULL}, "--once"}, /* a flag of another command */
	{COMMAND_DIFF, {"--endpoint", "http://x", NULL}, "--endpoint"},
	{COMMAND_PUBLISH, {"--run", NULL}, "--run"}, /* no value */
	{COMMAND_PUBLISH, {"--run=", NULL}, "--run"},
	{COMMAND_PUBLISH, {"--json=1", NULL}, "takes no value"},
	{COMMAND_PUBLISH, {"--step", "x", NULL}, "--step"},
	{COMMAND_PUBLISH, {"--step", "-1", NULL}, "--step"},
	{COMMAND_FOLLOW, {"--poll", "61", NULL}, "1 to 60"},
	{COMMAND_FOLLOW, {"--poll", "0", NULL}, "1 to 60"},
	{COMMAND_GET, {"--parallel", "65", NULL}, "1 to 64"},
	{COMMAND_PUBLISH, {"--metadata", "novalue", NULL}, "KEY=VALUE"},
	{COMMAND_PUBLISH, {"--metadata", "=v", NULL}, "KEY=VALUE"},
	{COMMAND_KEYS, {"--grant", "bucket", NULL}, "--grant"},
	{COMMAND_PUBLISH, {"-r", "x", NULL}, "-r"},
};

START_TEST(refusals_name_the_flag)
{
	struct options options;
	struct error err = {0};
	ck_assert_int_eq(parse(&options, REFUSED[_i].command, REFUSED[_i].words, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_msg(strstr(err.text, REFUSED[_i].says) != NULL, "%s", err.text);
}
END_TEST

static char *write_config(const char *text)
{
	char *const path = malloc(8192);
	struct error err = {0};
	snprintf(path, 8192, "%s/config", folder);
	ck_assert_int_eq(file_publish(file_system(), path, span_text(text), 0600, &err), 0);
	return path;
}

START_TEST(flags_win_over_environment_and_that_over_the_file)
{
	struct options options;
	struct error err = {0};
	const char *const words[] = {"--endpoint", "http://flag/", NULL};
	char *const config = write_config(
		"# a comment\n\nendpoint = http://flag//\r\n token=file-token  \nca = /file/ca");
	setenv("DELTABUCKET_ENDPOINT", "http://environment", 1);
	setenv("DELTABUCKET_TOKEN", "environment-token", 1);
	ck_assert_int_eq(parse(&options, COMMAND_LS, words, &err), 0);
	ck_assert_msg(options_complete(&options, config, &err) == 0, "%s", err.text);
	ck_assert_str_eq(options.endpoint, "http://flag");
	ck_assert_str_eq(options.token, "environment-token");
	ck_assert_str_eq(options.ca, "/file/ca");
	options_release(&options);
	free(config);
}
END_TEST

/* Another server must not get the token. */
START_TEST(the_token_and_ca_of_the_file_are_for_its_endpoint)
{
	struct options options;
	struct error err = {0};
	const char *const words[] = {"--endpoint", "http://flag", NULL};
	char *const config = write_config(
		"endpoint = http://file\ntoken = t\nca = /ca\n[lab]\nendpoint = http://lab\ntoken = u");
	ck_assert_int_eq(parse(&options, COMMAND_LS, words, &err), 0);
	ck_assert_int_eq(options_complete(&options, config, &err), 0);
	ck_assert_pstr_eq(options.token, NULL);
	ck_assert_pstr_eq(options.ca, NULL);
	options_release(&options);
	setenv("DELTABUCKET_ENDPOINT", "http://environment", 1);
	setenv("DELTABUCKET_TOKEN", "environment-token", 1);
	const char *const named[] = {"--profile", "lab", NULL};
	ck_assert_int_eq(parse(&options, COMMAND_LS, named, &err), 0);
	ck_assert_int_eq(options_complete(&options, config, &err), 0);
	ck_assert_str_eq(options.endpoint, "http://lab");
	ck_assert_str_eq(options.token, "u");
	options_release(&options);
	const char *const missing[] = {"--profile", "other", NULL};
	ck_assert_int_eq(parse(&options, COMMAND_LS, missing, &err), 0);
	ck_assert_int_eq(options_complete(&options, config, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "login --profile other"));
	options_release(&options);
	free(config);
}
END_TEST

START_TEST(the_file_alone_is_enough)
{
	struct options options = {0};
	struct error err = {0};
	char *const config = write_config("endpoint=http://file//\ntoken = a=b");
	ck_assert_int_eq(options_complete(&options, config, &err), 0);
	ck_assert_str_eq(options.endpoint, "http://file");
	ck_assert_str_eq(options.token, "a=b");
	ck_assert_ptr_null(options.ca);
	options_release(&options);
	free(config);
}
END_TEST

START_TEST(an_absent_file_and_empty_variables_are_fine)
{
	struct options options = {0};
	struct error err = {0};
	setenv("DELTABUCKET_ENDPOINT", "", 1);
	ck_assert_int_eq(options_complete(&options, "/nonexistent/config", &err), 0);
	ck_assert_ptr_null(options.endpoint);
	ck_assert_int_eq(options_complete(&options, NULL, &err), 0);
}
END_TEST

static const struct {
	const char *text;
	const char *says;
} BAD_CONFIGS[] = {
	{"endpoint http://x\n", "line 1"},
	{"\ncolour = red\n", "line 2"},
	{"endpoint = \n", "no value"},
};

START_TEST(a_wrong_line_is_named)
{
	struct options options = {0};
	struct error err = {0};
	char *const config = write_config(BAD_CONFIGS[_i].text);
	ck_assert_int_eq(options_complete(&options, config, &err), -1);
	ck_assert_msg(strstr(err.text, BAD_CONFIGS[_i].says) != NULL, "%s", err.text);
	options_release(&options);
	free(config);
}
END_TEST

START_TEST(the_config_folder_can_be_moved)
{
	setenv("HOME", "/home/u", 1);
	unsetenv("XDG_CONFIG_HOME");
	char *path = options_config_path();
	ck_assert_str_eq(path, "/home/u/.config/deltabucket/config");
	free(path);
	setenv("XDG_CONFIG_HOME", "/cfg", 1);
	path = options_config_path();
	ck_assert_str_eq(path, "/cfg/deltabucket/config");
	free(path);
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("HOME");
	ck_assert_ptr_null(options_config_path());
}
END_TEST

START_TEST(help_lists_only_the_commands_own_flags)
{
	struct buffer text;
	buffer_init(&text, 65536);
	options_print_help(COMMAND_DIFF, &text);
	ck_assert_ptr_nonnull(strstr(buffer_text(&text), "--format FORMAT"));
	ck_assert_ptr_null(strstr(buffer_text(&text), "--into"));
	ck_assert_ptr_null(strstr(buffer_text(&text), "--endpoint"));
	buffer_release(&text);
}
END_TEST

Suite *test_options_suite(void);
Suite *test_options_suite(void)
{
	Suite *const suite = suite_create("options");
	TCase *const tests = tcase_create("options");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, flags_and_arguments_mix);
	tcase_add_test(tests, seeds_are_paths_of_any_form);
	tcase_add_test(tests, common_flags_may_stand_before_the_command);
	tcase_add_test(tests, letters_are_short_names);
	tcase_add_test(tests, letters_may_be_joined);
	tcase_add_test(tests, times_may_have_units);
	tcase_add_test(tests, one_name_may_mean_two_things);
	tcase_add_test(tests, a_dash_is_an_argument_and_two_end_the_flags);
	tcase_add_loop_test(tests, refusals_name_the_flag, 0, sizeof REFUSED / sizeof REFUSED[0]);
	tcase_add_test(tests, flags_win_over_environment_and_that_over_the_file);
	tcase_add_test(tests, the_file_alone_is_enough);
	tcase_add_test(tests, the_token_and_ca_of_the_file_are_for_its_endpoint);
	tcase_add_test(tests, an_absent_file_and_empty_variables_are_fine);
	tcase_add_loop_test(
		tests, a_wrong_line_is_named, 0, sizeof BAD_CONFIGS / sizeof BAD_CONFIGS[0]);
	tcase_add_test(tests, the_config_folder_can_be_moved);
	tcase_add_test(tests, help_lists_only_the_commands_own_flags);
	suite_add_tcase(suite, tests);
	return suite;
}
