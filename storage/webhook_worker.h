/* Sends what storage/webhook.h has noted: one event after the other, each tried again with growing pauses until it is taken (any 2xx) or given up. One
 * thread, none where the operator allows no hosts. Any thread. */
#ifndef STORAGE_WEBHOOK_WORKER_H
#define STORAGE_WEBHOOK_WORKER_H

#include "storage/store.h"

struct webhook_worker;

/* NULL when there is nothing to do. */
struct webhook_worker *webhook_worker_start(struct store *store);
/* A request that runs is broken off: its event is sent again after the next start. NULL is fine; before the committer stops. */
void webhook_worker_stop(struct webhook_worker *worker);

#endif
