/* `deltabucketd gc`: frees space, through a running server (at its rate) or on a stopped store
 * (without a limit). */
#ifndef SERVER_COMMANDS_GC_COMMAND_H
#define SERVER_COMMANDS_GC_COMMAND_H

/* `arguments` are the words after "gc". Returns the exit status: 0, 1 on failure, 2 for wrong
 * usage. Prints results to stdout and failures to stderr. */
int gc_command(int argument_count, char **arguments);

#endif
