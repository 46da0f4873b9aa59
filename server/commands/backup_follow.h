/* `deltabucketd backup --follow`: ships changes until SIGINT or SIGTERM, beside a server that may
 * stop and start meanwhile. What fails is told once and tried again. */
#ifndef SERVER_COMMANDS_BACKUP_FOLLOW_H
#define SERVER_COMMANDS_BACKUP_FOLLOW_H

#include "storage/backup/backup.h"

/* Gives the exit status, or -1 when it could not begin. */
int backup_follow(const struct backup_params *params, bool json, struct error *err);

#endif
