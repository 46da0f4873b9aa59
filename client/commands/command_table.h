/* The table of all commands: name, arguments, and the text of the help. */
#ifndef CLIENT_COMMANDS_COMMAND_TABLE_H
#define CLIENT_COMMANDS_COMMAND_TABLE_H

#include "client/commands/commands.h"

struct command {
	const char *name;
	enum command_bit bit;
	command_fn *run;
	size_t least, most; /* number of arguments */
	unsigned retries;   /* tries after the first, when --retries is not given */
	const char *arguments;
	const char *summary;
	const char *examples; /* each line ends with a newline */
};

const struct command *command_table(size_t *out_count);
/* NULL when there is no command of that name; the error then suggests the nearest one. */
const struct command *command_table_find(const char *name, struct error *err);

#endif
