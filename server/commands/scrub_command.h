/* `deltabucketd scrub`: verifies all sealed packs on the disk, through a running server or on a
 * stopped store. */
#ifndef SERVER_COMMANDS_SCRUB_COMMAND_H
#define SERVER_COMMANDS_SCRUB_COMMAND_H

/* `arguments` are the words after "scrub". Returns the exit status: 0 when nothing is damaged, 1 on
 * failure, 2 for wrong usage, 4 when damage is left. Prints results to stdout and failures to
 * stderr. */
int scrub_command(int argument_count, char **arguments);

#endif
