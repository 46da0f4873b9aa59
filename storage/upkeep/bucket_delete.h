/* Buckets that go. Both are told of as bucket.h says. */
#ifndef STORAGE_UPKEEP_BUCKET_DELETE_H
#define STORAGE_UPKEEP_BUCKET_DELETE_H

#include "storage/buckets/bucket.h"

/* Its settings go with it, and so do its open uploads. 0, no_bucket, bucket_not_empty,
 * bucket_has_runs. */
struct bucket_change *bucket_delete_start(
	struct store *store, struct span name, void (*done)(void *owner), void *owner);
/* With all that it holds: the name is free at once, the versions and uploads go in slices behind it
 * (sweeper.h), and gc gives their space back. 0, no_bucket, bucket_has_runs. */
struct bucket_change *bucket_drop_start(struct store *store, struct span name, int64_t bucket_id,
	void (*done)(void *owner), void *owner);

#endif
