/* What uploads leave to the sweeper: parts that a completion did not list, uploads of buckets that
 * are gone, completions remembered long enough. Internal to storage. */
#ifndef STORAGE_UPLOADS_UPLOAD_SWEEP_H
#define STORAGE_UPLOADS_UPLOAD_SWEEP_H

#include "storage/db/db.h"

/* One slice of it, in a change. *out_found: there was something to do. */
int upload_sweep(struct db *db, int64_t now_ms, bool *out_found, struct error *err);
int upload_sweep_has_work(struct db *db, int64_t now_ms, bool *out_has, struct error *err);

#endif
