/* The thread that stores full checkpoints, as clients PUT them, as deltas of earlier ones. It takes
 * the versions that wait (derive_waiting.h) in the order of their commits, at a bounded rate. A PUT
 * notes one row and waits for nothing; a restart continues where the last life stopped. A version
 * that fails for a reason that may pass is tried again after a minute and holds up no other. Any
 * thread. Internal to storage, except for quiesce. */
#ifndef STORAGE_DERIVE_DERIVE_WORKER_H
#define STORAGE_DERIVE_DERIVE_WORKER_H

#include "storage/core/store.h"

struct derive_worker;

/* Without options->enabled the thread does nothing. */
struct derive_worker *derive_worker_start(
	struct store *store, const struct derive_options *options);
/* Gives up the present version, and begins no further one. Returns at once. */
void derive_worker_quiesce(struct derive_worker *worker);
/* NULL is fine. Must come before the committer and the helpers stop. */
void derive_worker_stop(struct derive_worker *worker);

#endif
