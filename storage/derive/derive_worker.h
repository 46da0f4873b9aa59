/* Full checkpoints that clients PUT, stored as deltas of earlier ones: a thread that takes what
 * waits (derive_series.h) in the order of commits, at a bounded rate. A PUT notes one row and waits
 * for nothing; a restart goes on where it was. What fails for a reason that may pass is tried again
 * after a minute and holds up no other. Any thread. Internal to storage, but for quiesce. */
#ifndef STORAGE_DERIVE_DERIVE_WORKER_H
#define STORAGE_DERIVE_DERIVE_WORKER_H

#include "storage/core/store.h"

struct derive_worker;

/* Without `enabled` it does only what it is asked for. */
struct derive_worker *derive_worker_start(
	struct store *store, const struct derive_options *options);
/* What it works on is given up, and nothing further begins. */
void derive_worker_quiesce(struct derive_worker *worker);
/* NULL is fine; before the committer and the helpers stop */
void derive_worker_stop(struct derive_worker *worker);

#endif
