/* `deltabucketd keys add|list|revoke`: asks the running server, or works on the store itself when
 * no server runs. */
#ifndef SERVER_COMMANDS_KEYS_COMMAND_H
#define SERVER_COMMANDS_KEYS_COMMAND_H

/* `arguments` are the words after "keys". Returns the exit status: 0, 1 on failure, 2 for wrong
 * usage. Prints results to stdout and failures to stderr. */
int keys_command(int argument_count, char **arguments);

#endif
