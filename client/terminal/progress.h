/* Shows on stderr how far a long piece of work is: bytes, rate and time left. On a terminal it
 * redraws one line a few times a second; elsewhere it prints a line every ten seconds, so that
 * short work prints nothing. Any thread may add. */
#ifndef CLIENT_TERMINAL_PROGRESS_H
#define CLIENT_TERMINAL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "weights/model/work_watch.h"

struct interrupt;
struct progress;

/* Copies `what`, which names the work ("downloading step 7"). Draws nothing unless `wanted`. */
struct progress *progress_new(const char *what, uint64_t total_bytes, bool wanted);
void progress_add(struct progress *progress, uint64_t bytes); /* NULL is fine */
/* Takes back bytes that were added and must be transferred again. NULL is fine. */
void progress_take_back(struct progress *progress, uint64_t bytes);
/* A watch for functions that take one: it counts their bytes, and makes them fail when a signal has
 * come. `interrupt` may be NULL. The watch belongs to the progress. */
struct work_watch *progress_watch(struct progress *progress, const struct interrupt *interrupt);
void progress_free(struct progress *progress); /* wipes the line; NULL is fine */

#endif
