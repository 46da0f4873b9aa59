/* Removes for the sweeper: parts that a completion did not list, uploads and versions of buckets
 * that are gone, and completed uploads after UPLOAD_KEPT_MS. Internal to storage. */
#ifndef STORAGE_UPLOADS_UPLOAD_SWEEP_H
#define STORAGE_UPLOADS_UPLOAD_SWEEP_H

#include "storage/db/db.h"

/* Inside a change: removes one slice. *out_found: there was something to remove. */
int upload_sweep(struct db *db, int64_t now_ms, bool *out_found, struct error *err);
int upload_sweep_has_work(struct db *db, int64_t now_ms, bool *out_has, struct error *err);

#endif
