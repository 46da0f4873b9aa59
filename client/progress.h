/* How far a long transfer is, on stderr, drawn a few times a second and only where stderr is a terminal. Any thread may add. */
#ifndef CLIENT_PROGRESS_H
#define CLIENT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress;

/* `what` ("downloading step 7") is copied. Draws nothing when `wanted` is false or stderr is no terminal. */
struct progress *progress_new(const char *what, uint64_t total_bytes, bool wanted);
void progress_add(struct progress *progress, uint64_t bytes); /* NULL is fine */
/* Bytes that have to come again. */
void progress_take_back(struct progress *progress, uint64_t bytes);
void progress_free(struct progress *progress); /* wipes the line; NULL is fine */

#endif
