/* The program `deltabucket`: finds the command in the table, reads its options, runs it, and turns
 * its error into a sentence and an exit code. Flags that every command has may stand before the
 * command's name. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/commands/help.h"
#include "client/terminal/cut_file.h"
#include "client/terminal/exit_code.h"
#include "client/terminal/interrupt.h"
#include "client/terminal/profile.h"
#include "client/terminal/progress_line.h"

enum { HELP_MAX_BYTES = 64 * 1024 };

static bool is_one_of(const char *word, const char *a, const char *b, const char *c);
static int run(const struct command *command, char *const *words, size_t count);
static int read_options(struct session *session, struct options *options,
	const struct command *command, char *const *words, size_t count, struct error *err);
static int check_arguments(
	struct session *session, const struct command *command, struct error *err);
static void print_help(const struct command *command, FILE *to);
static int run_command(struct session *session, const struct command *command,
	struct interrupt **out_interrupt, struct error *err);
static int set_remote(struct session *session, const struct command *command, struct error *err);
static void advise(struct error *err);
static int exit_status(const struct session *session, const struct command *command, int result,
	const struct error *err);
static int help(char *const *words, size_t count);
static int misused(char *const *words, size_t count, const struct error *err);
static int run_at(char *const *words, size_t count, size_t at);

int main(int argc, char **argv)
{
	struct error err = {0};
	size_t at = 0;
	const size_t count = argc > 1 ? (size_t)argc - 1 : 0;
	char *const *const words = argv + 1;
	signal(SIGPIPE, SIG_IGN);
	cut_file_guard();
	if (count > 0 && is_one_of(words[0], "--version", "-V", "-v"))
		return run(command_table_find("version", &err), words + 1, 0);
	if (count > 0 && is_one_of(words[0], "help", "--help", "-h"))
		return help(words + 1, count - 1);
	if (options_find_command(words, count, &at, &err) != 0)
		return misused(words, count, &err);
	if (at < count)
		return run_at(words, count, at);
	print_help(NULL, stderr);
	error_set(&err, ERROR_INVALID, "name a command");
	return misused(words, count, &err);
}

static bool is_one_of(const char *word, const char *a, const char *b, const char *c)
{
	return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

static int run(const struct command *command, char *const *words, size_t count)
{
	ASSERT(command != NULL);
	struct options options = {0};
	struct session session = {.options = &options, .files = file_system()};
	struct interrupt *interrupt = NULL;
	struct error err = {0};
	int result = read_options(&session, &options, command, words, count, &err);
	if (result == 0 && options.help) {
		print_help(command, stdout);
		options_release(&options);
		return EXIT_CODE_OK;
	}
	if (result == 0)
		result = run_command(&session, command, &interrupt, &err);
	const int status = exit_status(&session, command, result, &err);
	if (result != 0)
		advise(&err);
	if (result != 0 && stop_reason(session.stop) == 0)
		output_error(&session.output, &err);
	else if (result != 0 && (command->bit & COMMAND_GOES_ON) != 0)
		output_note(&session.output,
			"stopped before the end; the same command continues from here");
	interrupt_end(interrupt);
	stop_free(session.stop);
	options_release(&options);
	return status;
}

static int read_options(struct session *session, struct options *options,
	const struct command *command, char *const *words, size_t count, struct error *err)
{
	session->usage = true; /* until the whole command line is understood */
	const int parsed = options_parse(options, command->bit, words, count, err);
	const bool is_json = options->json || (parsed != 0 && options_want_json(words, count));
	session->output = (struct output){.json = is_json, .quiet = options->quiet};
	session->progress = options->quiet ? NULL : progress_line();
	session->parallel = (unsigned)options->parallel.value;
	if (parsed != 0)
		return -1;
	if (options->help)
		return 0;
	char *const config = options_config_path();
	const int result = (command->bit & COMMAND_CONNECTED) != 0
		? options_complete(options, config, err)
		: 0;
	if (config != NULL && options_has_stored_token(options) && profile_is_exposed(config))
		output_note(&session->output,
			"%s holds a token, and users other than its owner may read it; chmod 600 "
			"prevents that",
			config);
	free(config);
	if (result != 0 || check_arguments(session, command, err) != 0)
		return -1;
	session->usage = false;
	return 0;
}

static int check_arguments(
	struct session *session, const struct command *command, struct error *err)
{
	const size_t count = session->options->argument_count;
	if (count >= command->least && count <= command->most)
		return 0;
	const bool is_more = count > command->most;
	const size_t limit = is_more ? command->most : command->least;
	if (command->most == 0)
		return session_usage(session, err,
			"%s takes no argument such as %.100s; usage: deltabucket %s [FLAGS]%s%s (--help lists the flags)",
			command->name, session->options->arguments[0], command->name,
			command->arguments[0] != '\0' ? " " : "", command->arguments);
	const char *const bound = command->least == command->most ? ""
		: is_more                                         ? "at most "
								  : "at least ";
	return session_usage(session, err,
		"%s takes %s%zu argument%s, not %zu; usage: deltabucket %s [FLAGS] %s (--help lists "
		"the flags)",
		command->name, bound, limit, limit == 1 ? "" : "s", count, command->name,
		command->arguments);
}

static void print_help(const struct command *command, FILE *to)
{
	struct buffer text;
	buffer_init(&text, HELP_MAX_BYTES);
	if (command == NULL)
		help_print_overview(&text);
	else
		help_print_command(command, &text);
	fputs(buffer_text(&text), to);
	buffer_release(&text);
}

/* Commands that only compute keep the default signals: an output gets its name only when it is
 * whole. */
static int run_command(struct session *session, const struct command *command,
	struct interrupt **out_interrupt, struct error *err)
{
	if ((command->bit & COMMAND_REMOTE) == 0)
		return command->run(session, err);
	session->stop = stop_new();
	*out_interrupt = interrupt_start(session->stop);
	const int result =
		(command->bit & COMMAND_CONNECTED) != 0 ? set_remote(session, command, err) : 0;
	return result == 0 ? command->run(session, err) : -1;
}

/* Sets the server. options_complete has taken it from flags, environment or config file. */
static int set_remote(struct session *session, const struct command *command, struct error *err)
{
	const struct options *const options = session->options;
	if (options->endpoint == NULL)
		return session_usage(session, err,
			"say which server: --endpoint URL, DELTABUCKET_ENDPOINT, or "
			"`deltabucket login ENDPOINT` once");
	if (options_check_endpoint(options->endpoint, err) != 0) {
		session->usage = true;
		return -1;
	}
	session->remote_options = (struct remote_options){
		.endpoint = options->endpoint,
		.token = options->token,
		.ca = options->ca,
		.retries = options->retries.given ? (unsigned)options->retries.value
						  : command->retries,
		.stop = session->stop,
		.output = &session->output,
	};
	return 0;
}

/* Adds what lists the names that there are, unless the sentence has other advice. */
static void advise(struct error *err)
{
	static const struct {
		enum error_kind kind;
		const char *advice;
	} ROWS[] = {{ERROR_NO_BUCKET, "`deltabucket ls` lists the buckets"},
		{ERROR_NO_RUN, "`deltabucket runs` lists the runs"},
		{ERROR_NO_STEP, "`deltabucket steps BUCKET/RUN` lists the steps"}};
	for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
		if (err->kind == ROWS[i].kind && strchr(err->text, ';') == NULL)
			error_advise(err, "%s", ROWS[i].advice);
}

static int exit_status(const struct session *session, const struct command *command, int result,
	const struct error *err)
{
	const int signal = stop_reason(session->stop);
	if (result == 0)
		return EXIT_CODE_OK;
	if (signal == SIGTERM && command->bit == COMMAND_FOLLOW)
		return EXIT_CODE_OK; /* the normal end of a follower */
	if (signal != 0)
		return EXIT_CODE_SIGNAL_BASE + signal;
	if (session->usage ||
		(err->kind == ERROR_INVALID && (command->bit & COMMAND_WORDS_ALONE) != 0))
		return EXIT_CODE_USAGE;
	return (int)exit_code_of(err->kind);
}

/* `words` are those behind `help`; flags among them mean nothing. */
static int help(char *const *words, size_t count)
{
	struct error err = {0};
	size_t at = 0;
	while (at < count && words[at][0] == '-')
		at++;
	const struct command *const command =
		at == count ? NULL : command_table_find(words[at], &err);
	if (at < count && command == NULL)
		return misused(words, count, &err);
	print_help(command, stdout);
	return EXIT_CODE_OK;
}

/* Ends a command line in which no command was found. */
static int misused(char *const *words, size_t count, const struct error *err)
{
	struct output output = {.json = options_want_json(words, count)};
	output_error(&output, err);
	return EXIT_CODE_USAGE;
}

/* Runs the command at words[at] with the words before and after it. */
static int run_at(char *const *words, size_t count, size_t at)
{
	ASSERT(at < count);
	struct error err = {0};
	if (strcmp(words[at], "help") == 0)
		return help(words + at + 1, count - at - 1);
	const struct command *const command = command_table_find(words[at], &err);
	if (command == NULL)
		return misused(words, count, &err);
	char **const rest = memory_new_array(count, sizeof(*rest));
	memcpy(rest, words, at * sizeof(*rest));
	memcpy(rest + at, words + at + 1, (count - at - 1) * sizeof(*rest));
	const int status = run(command, rest, count - 1);
	free(rest);
	return status;
}
