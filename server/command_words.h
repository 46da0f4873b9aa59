/* What stands behind `deltabucketd keys`, `gc` and `set-aside`: flags by a table, and arguments. */
#ifndef SERVER_COMMAND_WORDS_H
#define SERVER_COMMAND_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { COMMAND_LIST_MAX = 256 };

struct command_list {
	const char *items[COMMAND_LIST_MAX];
	size_t count;
};

/* One of `text`, `list` and `switched` is where the value goes. */
struct command_flag {
	const char *name;
	const char **text;
	struct command_list *list;
	bool *switched;
};

/* `--flag value`, `--flag=value` and arguments mix; -h is --help wherever it stands, and ends the
 * reading. `out_arguments` gets what is no flag. invalid says what is wrong, and which flag may
 * have been meant. Everything is borrowed. */
int command_words_read(const struct command_flag *flags, size_t flag_count, int count,
	char *const *words, bool *out_help, struct command_list *out_arguments, struct error *err);

#endif
