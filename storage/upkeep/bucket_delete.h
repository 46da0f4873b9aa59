/* Deletes buckets. */
#ifndef STORAGE_UPKEEP_BUCKET_DELETE_H
#define STORAGE_UPKEEP_BUCKET_DELETE_H

#include "storage/buckets/bucket.h"

/* Deletes an empty bucket with its settings and its open uploads. 0, no_bucket, bucket_not_empty,
 * bucket_has_runs. */
struct call *bucket_delete_call(struct store *store, struct bucket_ref ref);
/* Deletes a bucket with everything in it. The name is free at once; the sweeper removes the
 * versions and uploads in slices later (sweeper.h), and gc gives their space back. 0, no_bucket,
 * bucket_has_runs. */
struct call *bucket_drop_call(struct store *store, struct bucket_ref ref);

#endif
