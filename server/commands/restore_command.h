/* `deltabucketd restore`: docs/OPERATIONS.md, "Backup". Gives the exit status: 4 when the store was
 * restored and lacks files that the backup lacks. */
#ifndef SERVER_COMMANDS_RESTORE_COMMAND_H
#define SERVER_COMMANDS_RESTORE_COMMAND_H

int restore_command(int argument_count, char **arguments);

#endif
