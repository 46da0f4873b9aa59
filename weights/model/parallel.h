/* One function over many items on several threads, joined before it returns. */
#ifndef WEIGHTS_MODEL_PARALLEL_H
#define WEIGHTS_MODEL_PARALLEL_H

#include "base/error.h"

/* `worker` counts from 0: for scratch memory that each thread keeps to itself. */
typedef int parallel_fn(void *state, size_t item, unsigned worker, struct error *err);

/* How many workers a run over `items` items has: `wanted`, or one per core where it is 0; never
 * more than items, never 0. */
unsigned parallel_workers(unsigned wanted, size_t items);
/* Items are handed out in rising order. After a failure no further item is begun, and the error is
 * that of the lowest failed item. */
int parallel_run(unsigned workers, size_t items, parallel_fn *fn, void *state, struct error *err);

#endif
