/* `deltabucketd set-aside`: lists the files that a start has set aside, and removes those that the
 * operator names. It works only on the folder, whether a server runs or not. */
#ifndef SERVER_COMMANDS_SET_ASIDE_COMMAND_H
#define SERVER_COMMANDS_SET_ASIDE_COMMAND_H

/* `arguments` are the words after "set-aside". Returns the exit status: 0, 1 on failure, 2 for
 * wrong usage. */
int set_aside_command(int argument_count, char **arguments);

#endif
