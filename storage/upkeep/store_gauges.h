/* The metrics that say what is in the store at present. They are counted when somebody asks for
 * them. */
#ifndef STORAGE_UPKEEP_STORE_GAUGES_H
#define STORAGE_UPKEEP_STORE_GAUGES_H

#include "storage/core/store.h"

/* Sets the metrics of the disk, the catalog and the queues. Reads the disk: not for reactors. On
 * failure those of the catalog keep their values. */
int store_gauges_measure(struct store *store, struct error *err);

#endif
