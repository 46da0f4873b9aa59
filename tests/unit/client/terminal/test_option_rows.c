/* The flags of each command, the members that their values go to, and the ranges of numbers. */
#include "tests/unit/unit.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "client/terminal/options.h"

#define SERVER " --retries --endpoint --token --ca --profile --json --quiet --help"
#define MOVER  " --parallel" SERVER

static const struct {
	enum command_bit command;
	const char *flags;
} COMMANDS[] = {
	{COMMAND_PUBLISH,
		" --run --rank --epoch --step --wait --label --metadata --anchor --format --state --watch --marker --include --take-over --keep-steps"
		" --create-bucket --threads" MOVER},
	{COMMAND_FOLLOW,
		" --run --into --exec --replica --tensors --rank --once --step --wait --poll --volatile --keep --threads" MOVER},
	{COMMAND_DIFF, " --step --format --checksum --threads --json --quiet --help"},
	{COMMAND_APPLY, " --threads --json --quiet --help"},
	{COMMAND_FOLD, " --step --base --to --checksum --threads --json --quiet --help"},
	{COMMAND_TRANSCODE, " --step --base --to --checksum --threads --json --quiet --help"},
	{COMMAND_INSPECT, " --base --stats --tensors --threads --json --quiet --help"},
	{COMMAND_PUT, " --create-bucket --plain" MOVER},
	{COMMAND_GET, " --seed --plain" MOVER},
	{COMMAND_LS, " --long --recursive --limit" SERVER},
	{COMMAND_RM, " --recursive --dry-run" SERVER},
	{COMMAND_CP, " --create-bucket --seed --plain" MOVER},
	{COMMAND_MB, " --exist-ok" SERVER},
	{COMMAND_RB, " --force" SERVER},
	{COMMAND_LOGIN, " --profile --fingerprint --ca --json --quiet --help"},
	{COMMAND_LOGOUT, " --profile --json --quiet --help"},
	{COMMAND_VERSION, " --json --quiet --help"},
	{COMMAND_SYNC, " --create-bucket --delete --dry-run --plain" MOVER},
	{COMMAND_RUNS, SERVER},
	{COMMAND_STEPS, " --limit" SERVER},
	{COMMAND_REPLICAS, " --watch" SERVER},
	{COMMAND_PINS, " --ttl" SERVER},
	{COMMAND_FLEET, SERVER},
	{COMMAND_STATUS, SERVER},
	{COMMAND_KEYS, " --name --namespace --grant" SERVER},
};

static int parse_two(struct options *options, enum command_bit command, const char *flag,
	const char *value, struct error *err)
{
	const char *const words[] = {flag, value};
	return options_parse(
		options, command, (char *const *)(const void *)words, value == NULL ? 1 : 2, err);
}

/* Lists the first word of each line that begins with two dashes. */
static void list_flags(struct span help, struct buffer *out)
{
	struct span rest = help;
	struct span line;
	while (rest.len > 0 && span_split(&rest, '\n', &line)) {
		while (line.len > 0 && line.data[0] == ' ')
			line = span_slice(line, 1, line.len);
		struct span word;
		if (!span_starts(line, span_text("--")) || !span_split(&line, ' ', &word))
			continue;
		if (span_ends_text(word, ",")) /* a letter follows */
			word = span_slice(word, 0, word.len - 1);
		buffer_add_byte(out, ' ');
		buffer_add_span(out, word);
	}
}

START_TEST(each_command_has_its_flags)
{
	struct buffer help;
	struct buffer flags;
	buffer_init(&help, 65536);
	buffer_init(&flags, 65536);
	options_print_help(COMMANDS[_i].command, &help);
	list_flags(buffer_span(&help), &flags);
	ck_assert_str_eq(buffer_text(&flags), COMMANDS[_i].flags);
	buffer_release(&flags);
	buffer_release(&help);
}
END_TEST

#define AT(member) offsetof(struct options, member)

static const struct {
	enum command_bit command;
	const char *flag;
	size_t member;
	uint64_t least, most;
} NUMBERS[] = {
	{COMMAND_PUBLISH, "--epoch", AT(epoch), 0, UINT32_MAX},
	{COMMAND_PUBLISH, "--step", AT(step), 0, UINT32_MAX},
	{COMMAND_FOLLOW, "--wait", AT(wait), 0, 86400},
	{COMMAND_FOLLOW, "--poll", AT(poll), 1, 60},
	{COMMAND_FOLLOW, "--keep", AT(keep), 0, 1000},
	{COMMAND_PUBLISH, "--keep-steps", AT(keep_steps), 0, UINT32_MAX},
	{COMMAND_PINS, "--ttl", AT(ttl), 1, UINT32_MAX},
	{COMMAND_REPLICAS, "--watch", AT(watch), 1, 86400},
	{COMMAND_STEPS, "--limit", AT(limit), 1, UINT32_MAX},
	{COMMAND_DIFF, "--threads", AT(threads), 1, 1024},
	{COMMAND_SYNC, "--parallel", AT(parallel), 1, 64},
	{COMMAND_RM, "--retries", AT(retries), 0, 1000},
};

START_TEST(numbers_have_their_limits)
{
	for (int i = -1; i <= 2; i++) {
		const uint64_t value = i <= 0 ? NUMBERS[_i].least + (uint64_t)i
					      : NUMBERS[_i].most + (uint64_t)i - 1;
		const bool is_good = i == 0 || i == 1;
		struct options options;
		struct error err = {0};
		char text[32];
		snprintf(text, sizeof text, "%" PRIu64, value);
		ck_assert_msg((parse_two(&options, NUMBERS[_i].command, NUMBERS[_i].flag, text,
				       &err) == 0) == is_good,
			"%s %s", NUMBERS[_i].flag, text);
		const struct option_number *const number =
			(const struct option_number *)((const char *)&options + NUMBERS[_i].member);
		ck_assert_msg(number->given == is_good && (!is_good || number->value == value),
			"%s %s", NUMBERS[_i].flag, text);
	}
}
END_TEST

static const struct {
	enum command_bit command;
	const char *flag;
	size_t member;
} TEXTS[] = {
	{COMMAND_FOLLOW, "--run", AT(run)},
	{COMMAND_FOLLOW, "--into", AT(into)},
	{COMMAND_FOLLOW, "--exec", AT(exec)},
	{COMMAND_FOLLOW, "--replica", AT(replica)},
	{COMMAND_FOLLOW, "--tensors", AT(glob)},
	{COMMAND_FOLLOW, "--rank", AT(rank)},
	{COMMAND_PUBLISH, "--label", AT(label)},
	{COMMAND_PUBLISH, "--anchor", AT(anchor)},
	{COMMAND_PUBLISH, "--format", AT(format)},
	{COMMAND_FOLD, "--base", AT(base)},
	{COMMAND_FOLD, "--to", AT(to)},
	{COMMAND_FOLD, "--checksum", AT(checksum)},
	{COMMAND_PUBLISH, "--state", AT(state)},
	{COMMAND_KEYS, "--name", AT(name)},
	{COMMAND_KEYS, "--namespace", AT(namespace)},
	{COMMAND_LS, "--endpoint", AT(endpoint)},
	{COMMAND_LS, "--token", AT(token)},
	{COMMAND_LS, "--ca", AT(ca)},
};

START_TEST(texts_go_to_their_place)
{
	struct options options;
	struct error err = {0};
	ck_assert_int_eq(parse_two(&options, TEXTS[_i].command, TEXTS[_i].flag, "value", &err), 0);
	const char *const *const text =
		(const char *const *)(const void *)((const char *)&options + TEXTS[_i].member);
	ck_assert_str_eq(*text, "value");
}
END_TEST

static const struct {
	enum command_bit command;
	const char *flag;
	size_t member;
} SWITCHES[] = {
	{COMMAND_FOLLOW, "--once", AT(once)},
	{COMMAND_INSPECT, "--stats", AT(stats)},
	{COMMAND_INSPECT, "--tensors", AT(tensors)},
	{COMMAND_PUBLISH, "--take-over", AT(take_over)},
	{COMMAND_PUT, "--create-bucket", AT(create_bucket)},
	{COMMAND_LS, "--recursive", AT(recursive)},
	{COMMAND_SYNC, "--delete", AT(delete)},
	{COMMAND_SYNC, "--dry-run", AT(dry_run)},
	{COMMAND_SYNC, "--plain", AT(plain)},
	{COMMAND_LS, "--json", AT(json)},
	{COMMAND_LS, "--quiet", AT(quiet)},
	{COMMAND_LS, "--help", AT(help)},
};

START_TEST(a_switch_turns_on_itself_and_nothing_else)
{
	struct options options;
	struct error err = {0};
	ck_assert_int_eq(
		parse_two(&options, SWITCHES[_i].command, SWITCHES[_i].flag, NULL, &err), 0);
	for (size_t i = 0; i < sizeof SWITCHES / sizeof SWITCHES[0]; i++)
		ck_assert_msg(*((const bool *)&options + SWITCHES[i].member) == ((int)i == _i),
			"%s", SWITCHES[i].flag);
}
END_TEST

/* A value for which there is no room is refused, not dropped. */
START_TEST(lists_and_arguments_are_bounded)
{
	static const char *const pairs[] = {"--metadata=a=1", "--seed=a", "a"};
	static const enum command_bit commands[] = {COMMAND_PUBLISH, COMMAND_GET, COMMAND_FOLD};
	const size_t most = _i == 2 ? OPTIONS_ARGUMENTS_MAX : OPTIONS_LIST_MAX;
	const char *words[OPTIONS_ARGUMENTS_MAX + OPTIONS_LIST_MAX + 1];
	struct options options;
	struct error err = {0};
	for (size_t i = 0; i <= most; i++)
		words[i] = pairs[_i];
	ck_assert_int_eq(options_parse(&options, commands[_i], (char *const *)(const void *)words,
				 most, &err),
		0);
	ck_assert_uint_eq(_i == 0 ? options.metadata.count
			: _i == 1 ? options.seeds.count
				  : options.argument_count,
		most);
	ck_assert_int_eq(options_parse(&options, commands[_i], (char *const *)(const void *)words,
				 most + 1, &err),
		-1);
}
END_TEST

Suite *test_option_rows_suite(void);

Suite *test_option_rows_suite(void)
{
	Suite *const suite = suite_create("option_rows");
	TCase *const tests = tcase_create("option_rows");
	tcase_add_loop_test(
		tests, each_command_has_its_flags, 0, sizeof COMMANDS / sizeof COMMANDS[0]);
	tcase_add_loop_test(
		tests, numbers_have_their_limits, 0, sizeof NUMBERS / sizeof NUMBERS[0]);
	tcase_add_loop_test(tests, texts_go_to_their_place, 0, sizeof TEXTS / sizeof TEXTS[0]);
	tcase_add_loop_test(tests, a_switch_turns_on_itself_and_nothing_else, 0,
		sizeof SWITCHES / sizeof SWITCHES[0]);
	tcase_add_loop_test(tests, lists_and_arguments_are_bounded, 0, 3);
	suite_add_tcase(suite, tests);
	return suite;
}
