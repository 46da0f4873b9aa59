/* Has sent what storage/runs/webhook.h has noted, each tried again with growing pauses until it is
 * taken (any 2xx) or given up: one event of a run at a time, two of an account, 16 in all, by
 * turns, so that slow receivers of one account do not delay another's. No threads where the
 * operator allows no hosts. Any thread. */
#ifndef STORAGE_STEP_JOBS_WEBHOOK_WORKER_H
#define STORAGE_STEP_JOBS_WEBHOOK_WORKER_H

#include "storage/core/store.h"

struct webhook_worker;

/* NULL when there is nothing to do. */
struct webhook_worker *webhook_worker_start(struct store *store);
/* Requests that run are broken off: their events are sent again after the next start. NULL is fine;
 * before the committer stops. */
void webhook_worker_stop(struct webhook_worker *worker);

#endif
