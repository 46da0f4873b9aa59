/* Counts how far a long piece of work is, and shows it where somebody wants to see it: the program
 * on its terminal (client/terminal/progress_line.h), the library's caller in a callback. Any thread
 * may add. */
#ifndef CLIENT_WORK_PROGRESS_H
#define CLIENT_WORK_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "weights/model/work_watch.h"

struct stop;
struct progress;

struct progress_facts {
	const char *what; /* "downloading step 7" */
	uint64_t done;    /* bytes */
	uint64_t total;   /* bytes; 0: not known */
	int64_t elapsed_ms;
};

/* Where progress is shown. */
struct progress_sink {
	/* called by any of the working threads, by one at a time */
	void (*show)(void *owner, const struct progress_facts *facts);
	void (*end)(void *owner); /* once after the work; NULL: nothing to do */
	void *owner;
	int64_t pause_ms; /* at least this long passes before `show` and between two calls */
};

/* Copies `what`, which names the work. `sink` is borrowed; NULL: nobody looks. */
struct progress *progress_new(
	const char *what, uint64_t total_bytes, const struct progress_sink *sink);
void progress_add(struct progress *progress, uint64_t bytes); /* NULL is fine */
/* Takes back bytes that were added and must be transferred again. NULL is fine. */
void progress_take_back(struct progress *progress, uint64_t bytes);
/* A watch for functions that take one: it counts their bytes, and makes them fail when the word to
 * stop has come. `stop` may be NULL. The watch belongs to the progress. */
struct work_watch *progress_watch(struct progress *progress, const struct stop *stop);
void progress_free(struct progress *progress); /* NULL is fine */

#endif
