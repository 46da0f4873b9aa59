/* The work behind the requests of a fleet, every few seconds: it saves leases and forgets old ones,
 * and removes pins that ran out. Once a minute retention looks at every run that keeps more than
 * its last steps, because leases, pins and path answers also run out when nobody publishes. Any
 * thread. Internal to storage. */
#ifndef STORAGE_STEP_JOBS_FLEET_WORKER_H
#define STORAGE_STEP_JOBS_FLEET_WORKER_H

#include "storage/core/store.h"

struct fleet_worker;

struct fleet_worker *fleet_worker_start(struct store *store);
/* Saves leases once more. NULL is fine. Must come before the committer stops. */
void fleet_worker_stop(struct fleet_worker *worker);
/* One round, now; with `retain` also retention. */
int fleet_worker_round(struct store *store, bool retain, struct error *err);

#endif
