/* The running server: everything that lives between start and stop, in the order it is opened.
 * Signals: TERM and INT drain and stop (a second one stops at once), HUP reloads the
 * certificate. */
#ifndef SERVER_DAEMON_H
#define SERVER_DAEMON_H

#include "server/configuration.h"

/* Blocks the signals it waits for; call before any thread is made. */
void daemon_block_signals(void);
/* Opens all, says that it is ready on stdout, serves until told to stop. 0 after an orderly
 * stop. */
int daemon_run(
	const struct configuration *configuration, char *const *environment, struct error *err);

#endif
