/* Every command, once: its name, what it takes, what help says of it. */
#ifndef CLIENT_COMMANDS_COMMAND_TABLE_H
#define CLIENT_COMMANDS_COMMAND_TABLE_H

#include "client/commands/commands.h"

struct command {
	const char *name;
	enum command_bit bit;
	command_fn *run;
	size_t least, most; /* arguments */
	unsigned retries;   /* tries after the first, when --retries is not given */
	const char *arguments;
	const char *summary;
	const char *examples; /* lines */
};

const struct command *command_table(size_t *out_count);
/* NULL: there is none of that name, and `err` says which was meant. */
const struct command *command_table_find(const char *name, struct error *err);

#endif
