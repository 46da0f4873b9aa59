/* The running server. TERM and INT let it drain and stop; a second one stops it at once. HUP
 * reloads the certificate. */
#ifndef SERVER_DAEMON_H
#define SERVER_DAEMON_H

#include "server/configuration.h"

/* Blocks the signals that daemon_run waits for. Must be called before any thread is started. */
void daemon_block_signals(void);
/* Opens everything, prints on stdout that it is ready, and serves until a signal stops it. Returns
 * 0 after an orderly stop. */
int daemon_run(
	const struct configuration *configuration, char *const *environment, struct error *err);

#endif
