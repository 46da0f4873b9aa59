/* Runs one function over many items on several threads and joins them before it returns. */
#ifndef WEIGHTS_MODEL_PARALLEL_H
#define WEIGHTS_MODEL_PARALLEL_H

#include "base/error.h"

/* `worker` is the number of the thread, from 0; callers use it to find the thread's own memory. */
typedef int parallel_fn(void *state, size_t item, unsigned worker, struct error *err);

/* The number of workers for a run over `items` items: `wanted`, or one per core when that is 0. Not
 * more than items, and at least 1. */
unsigned parallel_workers(unsigned wanted, size_t items);
/* Gives out items in rising order. After a failure no further item begins. The error is that of the
 * lowest item that failed. */
int parallel_run(unsigned workers, size_t items, parallel_fn *fn, void *state, struct error *err);

#endif
