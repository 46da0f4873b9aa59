/* Turns SIGINT and SIGTERM into an orderly stop. The first signal cancels every watched http_client
 * and ends every sleep, so that work unwinds with an error. A further signal, half a second or more
 * after the first, ends the process at once. Start one per process, before any other thread. Any
 * thread may call these functions. NULL stands for an interrupt that never comes, for tests. */
#ifndef CLIENT_TERMINAL_INTERRUPT_H
#define CLIENT_TERMINAL_INTERRUPT_H

#include "base/net/http_client.h"

struct interrupt;

struct interrupt *interrupt_start(void);
void interrupt_stop(struct interrupt *interrupt);

/* The number of the first signal, or 0 when none has come. */
int interrupt_signal(const struct interrupt *interrupt);
/* 0, or -1 with busy when a signal has come. Loops call it between two pieces of work. */
int interrupt_check(const struct interrupt *interrupt, struct error *err);
/* Sleeps for `ms`, which must not be negative. False when a signal ended the sleep early. */
bool interrupt_sleep(struct interrupt *interrupt, int64_t ms);

/* From now on a signal cancels the client. The caller must forget it, once, before freeing it. */
void interrupt_watch(struct interrupt *interrupt, struct http_client *client);
void interrupt_forget(struct interrupt *interrupt, struct http_client *client);

#endif
