/* A word to stop that work in progress obeys: every watched http_client is cancelled, every sleep
 * ends, and work unwinds with an error. Once given it stays. The program gives it when a signal
 * comes (client/terminal/interrupt.h), the library when its caller cancels. Any thread may call
 * these functions. NULL stands for a word that never comes. */
#ifndef CLIENT_WORK_STOP_H
#define CLIENT_WORK_STOP_H

#include "base/net/http_client.h"

enum { STOP_CANCELLED = -1 }; /* a reason other than a signal's number */

struct stop;

struct stop *stop_new(void);
void stop_free(struct stop *stop); /* nothing may be watched any more; NULL is fine */

/* `reason` is a signal's number or STOP_CANCELLED. Only the first call counts. */
void stop_give(struct stop *stop, int reason);
/* The reason, or 0 while the word has not come. */
int stop_reason(const struct stop *stop);
/* 0, or -1 with busy when the word has come. Loops call it between two pieces of work. */
int stop_check(const struct stop *stop, struct error *err);
/* Sleeps for `ms`, which must not be negative. False when the word ended the sleep early. */
bool stop_sleep(struct stop *stop, int64_t ms);

/* From now on the word cancels the client. The caller must forget it, once, before freeing it. */
void stop_watch(struct stop *stop, struct http_client *client);
void stop_forget(struct stop *stop, struct http_client *client);

#endif
