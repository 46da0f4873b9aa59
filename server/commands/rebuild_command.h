/* `deltabucketd rebuild`: makes the catalog of a stopped store again from its journal and its packs
 * (storage/rebuild/rebuild.h). */
#ifndef SERVER_COMMANDS_REBUILD_COMMAND_H
#define SERVER_COMMANDS_REBUILD_COMMAND_H

/* `arguments` are the words after "rebuild". Returns the exit status: 0, 1 on failure, 2 for wrong
 * usage, 4 when a catalog was made that lacks changes. */
int rebuild_command(int argument_count, char **arguments);

#endif
