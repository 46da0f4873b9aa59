/* The versions of a bucket that was deleted with everything in it. The sweeper removes them in
 * slices, after the bucket's open uploads (upload_sweep.h, which calls this). Internal to
 * storage. */
#ifndef STORAGE_VERSIONS_BUCKET_SWEEP_H
#define STORAGE_VERSIONS_BUCKET_SWEEP_H

#include "storage/db/db.h"

/* Inside the change that removes the bucket's row: notes the bucket in the table `gone_buckets`. */
int bucket_sweep_mark(struct db *db, int64_t bucket, struct error *err);
/* Removes one slice of the bucket's versions. *out_more is false once its keys show none. Versions
 * that something names stay, hidden (version.h). */
int bucket_sweep_versions(struct db *db, int64_t bucket, bool *out_more, struct error *err);

#endif
