/* SIGINT and SIGTERM for a command that must end its work in good order: they are blocked, and
 * asked for where it may stop. One thread; the process has no other one that takes them. */
#ifndef SERVER_COMMANDS_STOP_SIGNALS_H
#define SERVER_COMMANDS_STOP_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

/* From here on; before any thread is started. */
void stop_signals_block(void);
/* Whether one has come. */
bool stop_signals_came(void);
/* Sleeps that long, or until one comes. */
void stop_signals_sleep(int64_t ms);

#endif
