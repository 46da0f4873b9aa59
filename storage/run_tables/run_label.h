/* The name of a run for people: for log lines and messages of background work, which knows a run by
 * the number of its row. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_RUN_LABEL_H
#define STORAGE_RUN_TABLES_RUN_LABEL_H

#include "storage/core/store.h"

enum { RUN_LABEL_BYTES = 256 };

/* Writes "BUCKET/RUN", or "number N" when the run has ended or cannot be read. Reads the catalog.
 * Not inside a change. */
void run_label_format(struct store *store, int64_t run, char out[RUN_LABEL_BYTES]);

#endif
