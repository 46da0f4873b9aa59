/* Buckets that go. */
#ifndef STORAGE_UPKEEP_BUCKET_DELETE_H
#define STORAGE_UPKEEP_BUCKET_DELETE_H

#include "storage/buckets/bucket.h"

/* Its settings go with it, and so do its open uploads. 0, no_bucket, bucket_not_empty,
 * bucket_has_runs. */
struct call *bucket_delete_call(struct store *store, struct bucket_ref ref);
/* With all that it holds: the name is free at once, the versions and uploads go in slices behind it
 * (sweeper.h), and gc gives their space back. 0, no_bucket, bucket_has_runs. */
struct call *bucket_drop_call(struct store *store, struct bucket_ref ref);

#endif
