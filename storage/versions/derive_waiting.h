/* The table `derive_waiting`: versions that may be stored as deltas of earlier ones
 * (derive_worker.h). Each waits there from its commit until the worker has looked at it. Internal
 * to storage, except for the options. */
#ifndef STORAGE_VERSIONS_DERIVE_WAITING_H
#define STORAGE_VERSIONS_DERIVE_WAITING_H

#include "storage/core/store.h"
#include "storage/db/db.h"

struct derive_options {
	bool enabled;              /* false: no version is noted and none is looked at */
	uint64_t bytes_per_second; /* of weights read; 0: no limit */
	uint64_t min_bytes;        /* smaller objects stay as they are */
	int64_t interval_ms;       /* between two looks at the table; 0: 1 second */
};

/* Inside the change that commits a version: notes the version when it may be a checkpoint. */
int derive_waiting_note(struct store *store, struct db *db, int64_t version, struct span key,
	uint64_t size, struct error *err);
/* The first version above `after` that is not put off. 1 found, 0 none, -1. */
int derive_waiting_next(
	struct db *db, int64_t after, int64_t now_ms, int64_t *out_version, struct error *err);
/* The version is not looked at before until_ms. */
int derive_waiting_put_off(struct db *db, int64_t version, int64_t until_ms, struct error *err);
int derive_waiting_remove(struct db *db, int64_t version, struct error *err);
int derive_waiting_count(struct db *db, int64_t *out_count, struct error *err);

#endif
