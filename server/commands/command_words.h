/* Reads the words after `deltabucketd COMMAND`: flags from a table, and arguments. */
#ifndef SERVER_COMMANDS_COMMAND_WORDS_H
#define SERVER_COMMANDS_COMMAND_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { COMMAND_LIST_MAX = 256 };
enum { COMMAND_FAILED = 1, COMMAND_USAGE = 2 }; /* exit statuses */

struct command_list {
	const char *items[COMMAND_LIST_MAX];
	size_t count;
};

/* Exactly one of `text`, `list` and `switched` is set and gets the value. */
struct command_flag {
	const char *name;
	const char *variable; /* of the environment: what a text is when the flag is not given */
	const char **text;
	struct command_list *list;
	bool *switched;
};

struct command_given {
	bool help;                     /* --help or -h was found, and ended the reading */
	struct command_list arguments; /* the words that are not flags */
};

/* `--flag value`, `--flag=value` and arguments may come in any order. Fails with invalid; the
 * message names a similar flag if there is one. A switch --json is set then, wherever it stands.
 * Everything is borrowed from `words`. */
int command_words_read(const struct command_flag *flags, size_t flag_count, int count,
	char *const *words, struct command_given *out, struct error *err);
struct command_line {
	const char *command;
	int count;
	char *const *words; /* behind the command */
};
/* The same for a command that takes no arguments. Fails too when it gives `out_help`. */
int command_words_read_flags(const struct command_line *line, const struct command_flag *flags,
	size_t flag_count, bool *out_help, struct error *err);
/* invalid when the data folder was not named. */
int command_words_need_data(const char *data, struct error *err);
/* The end of a command that is not run: prints its usage text when `help` is set, else why the
 * words were refused. Returns the exit status. */
int command_words_end(const char *command, const char *usage, bool help, const struct error *err);
/* The same for a command with the flag --json, whose value is `json`. */
int command_words_refuse(
	const char *command, const char *usage, bool help, bool json, const struct error *err);
/* The end of a command that failed: a sentence that begins with `what` on stderr. With `json` also
 * {"error":{"code","message"}} as the last line of stdout. Returns COMMAND_FAILED. */
int command_words_fail(const char *what, bool json, const struct error *err);
/* Adds {"code","message"} as the member "error". */
struct json_writer;
void command_words_print_error(struct json_writer *writer, const struct error *err);

#endif
