/* `deltabucketd console --data DIR [--key ID]`: prints a link that signs in to the console once. */
#ifndef SERVER_COMMANDS_CONSOLE_COMMAND_H
#define SERVER_COMMANDS_CONSOLE_COMMAND_H

/* The words after the command. Returns the exit status. */
int console_command(int argument_count, char **arguments);

#endif
