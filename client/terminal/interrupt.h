/* SIGINT and SIGTERM as an orderly stop: the first one cancels every watched http_client and ends
 * every sleep, so that work unwinds with an error; one that comes half a second later, or after
 * that, ends the process at once. One per process, started before any other thread. Any thread;
 * NULL is an interrupt that never comes, for tests. */
#ifndef CLIENT_TERMINAL_INTERRUPT_H
#define CLIENT_TERMINAL_INTERRUPT_H

#include "base/net/http_client.h"

struct interrupt;

struct interrupt *interrupt_start(void);
void interrupt_stop(struct interrupt *interrupt);

/* The signal that came, 0 when none did. */
int interrupt_signal(const struct interrupt *interrupt);
/* 0, or -1 with busy when a signal came: what loops ask between two pieces of work. */
int interrupt_check(const struct interrupt *interrupt, struct error *err);
/* False when a signal cut it short. */
bool interrupt_sleep(struct interrupt *interrupt, int64_t ms);

/* A client that a signal shall cancel, from now until forgotten; forget it before freeing it. */
void interrupt_watch(struct interrupt *interrupt, struct http_client *client);
void interrupt_forget(struct interrupt *interrupt, struct http_client *client);

#endif
