/* deltabucketd: reads the settings and runs the daemon, or runs one of the commands. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/commands/backup_command.h"
#include "server/commands/console_command.h"
#include "server/commands/fsck_command.h"
#include "server/commands/gc_command.h"
#include "server/commands/keys_command.h"
#include "server/commands/rebuild_command.h"
#include "server/commands/restore_command.h"
#include "server/commands/scrub_command.h"
#include "server/commands/set_aside_command.h"
#include "server/configuration.h"
#include "server/daemon.h"
#include "server/folder_modes.h"
#include "server/root_key.h"

enum { TEXT_MAX_BYTES = 256 * 1024, STATUS_FAILED = 1, STATUS_USAGE = 2, COMMANDS_WITH_HELP = 9 };

static int help_command(int argument_count, char **arguments);
static int serve(int argument_count, char **arguments);
static void print(void (*fill)(struct buffer *out));
static int version_command(int argument_count, char **arguments);

static const struct {
	const char *name;
	int (*run)(int argument_count, char **arguments);
} commands[] = {{"keys", keys_command}, {"gc", gc_command}, {"set-aside", set_aside_command},
	{"rebuild", rebuild_command}, {"fsck", fsck_command}, {"scrub", scrub_command},
	{"backup", backup_command}, {"restore", restore_command}, {"console", console_command},
	{"help", help_command}, {"version", version_command}};

int main(int argument_count, char **arguments)
{
	folder_modes_begin();
	for (size_t i = 0; argument_count > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(arguments[1], commands[i].name) == 0)
			return commands[i].run(argument_count - 2, arguments + 2);
	return serve(argument_count - 1, arguments + 1);
}

/* `help COMMAND` is `COMMAND --help`. */
static int help_command(int argument_count, char **arguments)
{
	char flag[] = "--help";
	char *words[] = {flag};
	for (size_t i = 0; argument_count > 0 && i < COMMANDS_WITH_HELP; i++)
		if (strcmp(arguments[0], commands[i].name) == 0)
			return commands[i].run(1, words);
	return serve(
		argument_count > 0 ? argument_count : 1, argument_count > 0 ? arguments : words);
}

static int serve(int argument_count, char **arguments)
{
	struct configuration configuration;
	enum configuration_request request;
	struct error err = {0};
	int status = 0;
	daemon_block_signals();
	if (configuration_load(
		    &configuration, argument_count, arguments, environ, &request, &err) != 0)
		status = STATUS_USAGE;
	else if (request == CONFIGURATION_HELP)
		print(configuration_print_help);
	else if (request == CONFIGURATION_DOCS)
		print(configuration_print_docs);
	else if (request == CONFIGURATION_VERSION)
		printf("deltabucketd %s\n", PACKAGE_VERSION);
	else if (root_key_check(environ, &err) != 0)
		status = STATUS_USAGE;
	else if (daemon_run(&configuration, environ, &err) != 0)
		status = STATUS_FAILED;
	if (status != 0)
		fprintf(stderr, "deltabucketd: %s\n", err.text);
	configuration_release(&configuration);
	return status;
}

static void print(void (*fill)(struct buffer *out))
{
	struct buffer text;
	buffer_init(&text, TEXT_MAX_BYTES);
	fill(&text);
	fputs(buffer_text(&text), stdout);
	buffer_release(&text);
}

static int version_command(int argument_count, char **arguments)
{
	(void)argument_count;
	(void)arguments;
	printf("deltabucketd %s\n", PACKAGE_VERSION);
	return 0;
}
