/* What the fleet needs done behind the requests, every few seconds: leases are saved and forgotten,
 * pins that ran out are removed, and once a minute retention looks at every run that keeps more
 * than its last steps, since leases, pins and path answers run out without anybody publishing. Any
 * thread. Internal to storage. */
#ifndef STORAGE_STEP_JOBS_FLEET_WORKER_H
#define STORAGE_STEP_JOBS_FLEET_WORKER_H

#include "storage/core/store.h"

struct fleet_worker;

struct fleet_worker *fleet_worker_start(struct store *store);
/* saves leases once more; NULL is fine; before the committer stops */
void fleet_worker_stop(struct fleet_worker *worker);
/* One round, now; `retain`: retention too. */
int fleet_worker_round(struct store *store, bool retain, struct error *err);

#endif
