/* The program: finds the command in one table, reads options, runs it, and turns how it ended into a sentence and an exit code. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/commands.h"
#include "client/cut_file.h"
#include "client/exit_code.h"

struct command {
	const char *name;
	enum command_bit bit;
	command_fn *run;
	size_t least, most;      /* arguments */
	unsigned retries;        /* tries after the first, when --retries is not given */
	const char *arguments;
	const char *summary;
};

static const struct command COMMANDS[] = {
	{"publish", COMMAND_PUBLISH, command_publish, 0, 1, 8, "--run BUCKET/RUN CHECKPOINT",
		"make a checkpoint (file or folder) the run's next step"},
	{"follow", COMMAND_FOLLOW, command_follow, 0, 0, 4, "--run BUCKET/RUN --into DIR", "keep DIR/current on the newest step"},
	{"diff", COMMAND_DIFF, command_diff, 3, 3, 0, "BASE NEW OUT", "write the delta from one checkpoint to another"},
	{"apply", COMMAND_APPLY, command_apply, 3, 3, 0, "BASE DELTA OUT", "write the checkpoint that a delta makes of its base"},
	{"fold", COMMAND_FOLD, command_fold, 2, OPTIONS_ARGUMENTS_MAX, 0, "[--base CHECKPOINT] DELTA... OUT", "make one delta of several that follow on one another"},
	{"transcode", COMMAND_TRANSCODE, command_transcode, 2, 2, 0, "--base CHECKPOINT --to FORMAT DELTA OUT", "write a delta in another format"},
	{"inspect", COMMAND_INSPECT, command_inspect, 1, 1, 0, "PATH", "say what a checkpoint or delta is"},
	{"put", COMMAND_PUT, command_put, 2, 2, 8, "FILE BUCKET/KEY", "upload a file, or stdin (-)"},
	{"get", COMMAND_GET, command_get, 1, 2, 8, "BUCKET/KEY [FILE]", "download an object to a file, or stdout (-)"},
	{"ls", COMMAND_LS, command_ls, 0, 1, 3, "[BUCKET[/PREFIX]]", "list buckets or objects"},
	{"rm", COMMAND_RM, command_rm, 1, OPTIONS_ARGUMENTS_MAX, 3, "BUCKET/KEY...", "remove objects"},
	{"sync", COMMAND_SYNC, command_sync, 2, 2, 8, "FROM TO", "make a prefix like a folder, or a folder like a prefix: what differs is sent"},
	{"runs", COMMAND_RUNS, command_runs, 0, OPTIONS_ARGUMENTS_MAX, 3, "[BUCKET]", "list runs; `runs settings B/R [KEY=VALUE...]` shows or sets"},
	{"steps", COMMAND_STEPS, command_steps, 1, 1, 3, "BUCKET/RUN", "list the steps of a run"},
	{"replicas", COMMAND_REPLICAS, command_replicas, 1, 1, 3, "BUCKET/RUN", "list the workers of a run: state, step, how far behind"},
	{"pins", COMMAND_PINS, command_pins, 1, 4, 3, "BUCKET/RUN [add NAME STEP | rm NAME]", "list the steps that are kept by name, or change that"},
	{"status", COMMAND_STATUS, command_status, 0, 1, 3, "[BUCKET]", "the server, its runs and their fleets at a glance"},
	{"keys", COMMAND_KEYS, command_keys, 0, 2, 3, "[add | rm KEY_ID]", "list, make or revoke keys (root only)"},
};
enum { COMMAND_COUNT = sizeof COMMANDS / sizeof COMMANDS[0], HELP_MAX_BYTES = 64 * 1024 };

static const struct command *find_command(const char *const name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(COMMANDS[i].name, name) == 0)
			return &COMMANDS[i];
	return NULL;
}

static void print_overview(FILE *const to)
{
	size_t count;
	const struct exit_code_row *const codes = exit_code_rows(&count);
	fputs("usage: deltabucket COMMAND ...\n\n", to);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(to, "  %-9s %-30s %s\n", COMMANDS[i].name, COMMANDS[i].arguments, COMMANDS[i].summary);
	fputs("  help      [COMMAND]                      this text, or the flags of a command\n\n"
	      "The server comes from --endpoint, --token and --ca, else from DELTABUCKET_ENDPOINT, DELTABUCKET_TOKEN and DELTABUCKET_CA,\n"
	      "else from ~/.config/deltabucket/config (lines like `endpoint = https://host:9000`).\n\nexit codes:\n", to);
	for (size_t i = 0; i < count; i++)
		fprintf(to, "  %3d  %s\n", codes[i].code, codes[i].meaning);
}

static void print_command_help(const struct command *const command)
{
	struct buffer text;
	buffer_init(&text, HELP_MAX_BYTES);
	options_print_help(command->bit, &text);
	printf("usage: deltabucket %s [FLAGS] %s\n\n%s\n\n%s", command->name, command->arguments, command->summary, buffer_text(&text));
	buffer_release(&text);
}

static int help(const char *const name)
{
	const struct command *const command = name == NULL ? NULL : find_command(name);
	if (name != NULL && command == NULL) {
		fprintf(stderr, "deltabucket: there is no command %s; `deltabucket help` lists them\n", name);
		return EXIT_CODE_USAGE;
	}
	if (command == NULL)
		print_overview(stdout);
	else
		print_command_help(command);
	return EXIT_CODE_OK;
}

/* The server, from wherever it was given. */
static int set_remote(struct session *const session, const struct command *const command, struct error *const err)
{
	const struct options *const options = session->options;
	if (options->endpoint == NULL)
		return session_usage(session, err,
			"say which server: --endpoint URL, DELTABUCKET_ENDPOINT, or `endpoint = URL` in the config file");
	if (strncmp(options->endpoint, "https://", 8) != 0 && strncmp(options->endpoint, "http://", 7) != 0)
		return session_usage(session, err, "the endpoint %s does not begin with https:// or http://", options->endpoint);
	session->remote_options = (struct remote_options){
		.endpoint = options->endpoint,
		.token = options->token,
		.ca = options->ca,
		.retries = options->retries.given ? (unsigned)options->retries.value : command->retries,
		.interrupt = session->interrupt,
		.output = &session->output,
	};
	return 0;
}

static int check_arguments(struct session *const session, const struct command *const command, struct error *const err)
{
	const size_t count = session->options->argument_count;
	if (count >= command->least && count <= command->most)
		return 0;
	return session_usage(session, err, "usage: deltabucket %s [FLAGS] %s (--help lists the flags)", command->name, command->arguments);
}

static int read_options(struct session *const session, struct options *const options, const struct command *const command,
	char *const *const words, const size_t count, struct error *const err)
{
	session->usage = true; /* until all of it is understood */
	const int parsed = options_parse(options, command->bit, words, count, err);
	session->output = (struct output){.json = options->json, .quiet = options->quiet};
	if (parsed != 0)
		return -1;
	if (options->help)
		return 0;
	char *const config = options_config_path();
	const int result = (command->bit & COMMAND_REMOTE) != 0 ? options_complete(options, config, err) : 0;
	free(config);
	if (result != 0 || check_arguments(session, command, err) != 0)
		return -1;
	session->usage = false;
	return 0;
}

static int exit_status(const struct session *const session, const struct command *const command, const int result,
	const struct error *const err)
{
	const int signal = interrupt_signal(session->interrupt);
	if (result == 0)
		return EXIT_CODE_OK;
	if (signal == SIGTERM && command->bit == COMMAND_FOLLOW)
		return EXIT_CODE_OK; /* how a follower is meant to end */
	if (signal != 0)
		return EXIT_CODE_SIGNAL_BASE + signal;
	return session->usage ? EXIT_CODE_USAGE : (int)exit_code_of(err->kind);
}

/* Commands that only compute keep the default signals: they leave nothing under the name they were given until it is whole. */
static int run_command(struct session *const session, const struct command *const command, struct error *const err)
{
	if ((command->bit & COMMAND_REMOTE) == 0)
		return command->run(session, err);
	session->interrupt = interrupt_start();
	const int result = set_remote(session, command, err);
	return result == 0 ? command->run(session, err) : -1;
}

static int run(const struct command *const command, char *const *const words, const size_t count)
{
	struct options options = {0};
	struct session session = {.options = &options, .files = file_system()};
	struct error err = {0};
	int result = read_options(&session, &options, command, words, count, &err);
	if (result == 0 && options.help) {
		print_command_help(command);
		options_release(&options);
		return EXIT_CODE_OK;
	}
	if (result == 0)
		result = run_command(&session, command, &err);
	const int status = exit_status(&session, command, result, &err);
	if (result != 0 && interrupt_signal(session.interrupt) == 0)
		output_error(&session.output, &err);
	interrupt_stop(session.interrupt);
	options_release(&options);
	return status;
}

int main(const int argc, char **const argv)
{
	signal(SIGPIPE, SIG_IGN);
	cut_file_guard();
	if (argc < 2) {
		print_overview(stderr);
		return EXIT_CODE_USAGE;
	}
	const char *const name = argv[1];
	if (strcmp(name, "--version") == 0) {
		puts("deltabucket " PACKAGE_VERSION);
		return EXIT_CODE_OK;
	}
	if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return help(argc > 2 ? argv[2] : NULL);
	const struct command *const command = find_command(name);
	if (command == NULL)
		return help(name);
	return run(command, argv + 2, (size_t)argc - 2);
}
