/* The texts of `deltabucket help` and `deltabucket COMMAND --help`. */
#ifndef CLIENT_COMMANDS_HELP_H
#define CLIENT_COMMANDS_HELP_H

#include "client/commands/command_table.h"

void help_print_overview(struct buffer *out);
void help_print_command(const struct command *command, struct buffer *out);

#endif
