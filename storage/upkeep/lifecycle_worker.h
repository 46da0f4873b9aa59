/* The thread that does what lifecycle rules say. Now and then it walks the buckets that have rules,
 * in slices through readers, and removes what is due through changes. A change judges each version
 * again by the rules and tags of that moment, so that nothing goes that was made or changed
 * meanwhile. Versions that a published step names stay (invariant 6). Internal to storage. */
#ifndef STORAGE_UPKEEP_LIFECYCLE_WORKER_H
#define STORAGE_UPKEEP_LIFECYCLE_WORKER_H

#include "storage/core/store.h"

struct lifecycle_worker;

struct lifecycle_worker *lifecycle_worker_start(
	struct store *store, int64_t interval_ms, int64_t day_ms);
/* NULL is fine. Must come before the committer stops. */
void lifecycle_worker_stop(struct lifecycle_worker *worker);

/* Walks over everything once, now. The walk ends early when the catalog is no longer proven.
 * *out_removed: versions and uploads that went, and markers that were put. */
int lifecycle_worker_walk(
	struct store *store, int64_t day_ms, uint64_t *out_removed, struct error *err);

#endif
