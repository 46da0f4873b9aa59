/* What people call a run: for log lines and messages about background work, which knows it by the
 * number of its row. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_RUN_LABEL_H
#define STORAGE_RUN_TABLES_RUN_LABEL_H

#include "storage/core/store.h"

enum { RUN_LABEL_BYTES = 256 };

/* "BUCKET/RUN"; of a run that has ended, or cannot be read, "number N". Reads the catalog. Not
 * inside a change. */
void run_label_format(struct store *store, int64_t run, char out[RUN_LABEL_BYTES]);

#endif
