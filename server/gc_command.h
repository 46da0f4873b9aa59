/* `deltabucketd gc`: gives space back, on a running server (at its rate) or a stopped store (as
 * fast as it goes). */
#ifndef SERVER_GC_COMMAND_H
#define SERVER_GC_COMMAND_H

/* `arguments` behind "gc". The process's exit status: 0, 1 failed, 2 wrong usage. Prints to stdout,
 * failures to stderr. */
int gc_command(int argument_count, char **arguments);

#endif
