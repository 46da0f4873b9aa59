/* `deltabucketd keys add|list|revoke`: works on the store itself when nobody holds it, else asks
 * the server that does. */
#ifndef SERVER_KEYS_COMMAND_H
#define SERVER_KEYS_COMMAND_H

/* `arguments` behind "keys". The process's exit status: 0, 1 failed, 2 wrong usage. Prints to
 * stdout, failures to stderr. */
int keys_command(int argument_count, char **arguments);

#endif
