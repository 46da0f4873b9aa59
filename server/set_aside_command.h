/* `deltabucketd set-aside`: lists what a start has set aside, and removes what the operator names.
 * It works on the folder alone, beside a running server or without one. */
#ifndef SERVER_SET_ASIDE_COMMAND_H
#define SERVER_SET_ASIDE_COMMAND_H

/* Arguments behind "set-aside"; gives the exit status: 0, 1 when something failed, 2 for wrong
 * use. */
int set_aside_command(int argument_count, char **arguments);

#endif
