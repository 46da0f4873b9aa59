/* What Prometheus learns of the runs and their replicas: of the RUN_GAUGES_MAX runs that have
 * published last. So the number of series is bounded, whatever callers open. */
#ifndef STORAGE_OVERVIEW_RUN_GAUGES_H
#define STORAGE_OVERVIEW_RUN_GAUGES_H

#include "storage/core/store.h"

enum { RUN_GAUGES_MAX = 100 };

/* Adds the series of these runs to `out`, and sets the metric of the runs that are left out. Reads
 * the catalog, in a time that grows with the number of all runs: not for reactors. On failure
 * nothing is added. */
int run_gauges_print(struct store *store, struct buffer *out, struct error *err);

#endif
