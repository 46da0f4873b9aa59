/* `deltabucketd backup`: docs/OPERATIONS.md, "Backup". Gives the exit status: 4 when the moment was
 * made and lacks files that could not be read. */
#ifndef SERVER_COMMANDS_BACKUP_COMMAND_H
#define SERVER_COMMANDS_BACKUP_COMMAND_H

int backup_command(int argument_count, char **arguments);

#endif
