/* Sends the events that storage/runs/webhook.h has noted. Each is tried again with growing pauses
 * until it is taken (any 2xx) or given up. One event of a run at a time, two of an account, 16 in
 * all, by turns, so that slow receivers of one account do not delay another's. Without hosts that
 * the operator allows there are no threads. Any thread. */
#ifndef STORAGE_STEP_JOBS_WEBHOOK_WORKER_H
#define STORAGE_STEP_JOBS_WEBHOOK_WORKER_H

#include "storage/core/store.h"

struct webhook_worker;

/* NULL when the operator allows no hosts. */
struct webhook_worker *webhook_worker_start(struct store *store);
/* Breaks off running requests: their events are sent again after the next start. NULL is fine. Must
 * come before the committer stops. */
void webhook_worker_stop(struct webhook_worker *worker);

#endif
