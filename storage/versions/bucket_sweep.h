/* What a bucket that was dropped with all it held leaves to the sweeper: its versions. (Its open
 * uploads: upload_sweep.h, which comes first and asks here.) Internal to storage. */
#ifndef STORAGE_VERSIONS_BUCKET_SWEEP_H
#define STORAGE_VERSIONS_BUCKET_SWEEP_H

#include "storage/db/db.h"

/* In the change that removes the bucket's row. */
int bucket_sweep_mark(struct db *db, int64_t bucket, struct error *err);
/* One slice of its versions. *out_more: there may be others; false: its keys show none. Pinned ones
 * stay, hidden (version.h). */
int bucket_sweep_versions(struct db *db, int64_t bucket, bool *out_more, struct error *err);

#endif
