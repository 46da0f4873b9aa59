/* How far a long piece of work is, on stderr: bytes, rate and time left. Where that is a terminal,
 * one line that is drawn a few times a second; elsewhere a line every ten seconds, so that short
 * work says nothing. Any thread may add. */
#ifndef CLIENT_TERMINAL_PROGRESS_H
#define CLIENT_TERMINAL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "weights/model/work_watch.h"

struct interrupt;
struct progress;

/* `what` ("downloading step 7") is copied. Draws nothing when `wanted` is false. */
struct progress *progress_new(const char *what, uint64_t total_bytes, bool wanted);
void progress_add(struct progress *progress, uint64_t bytes); /* NULL is fine */
/* Bytes that have to come again. */
void progress_take_back(struct progress *progress, uint64_t bytes);
/* For work that can be watched: it is counted, and ends when a signal has come. `interrupt` may be
 * NULL. */
struct work_watch *progress_watch(struct progress *progress, const struct interrupt *interrupt);
void progress_free(struct progress *progress); /* wipes the line; NULL is fine */

#endif
