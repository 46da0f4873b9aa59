/* `deltabucketd fsck`: checks a whole store, and repairs it if asked. */
#ifndef SERVER_COMMANDS_FSCK_COMMAND_H
#define SERVER_COMMANDS_FSCK_COMMAND_H

/* `arguments` are the words after "fsck". Returns the exit status: 0 clean, 1 repaired, 2 usage,
 * 4 damage is left, 8 the store could not be checked. */
int fsck_command(int argument_count, char **arguments);

#endif
