/* Versions that may be stored as deltas of earlier ones (derive_worker.h): each waits from its
 * commit on until it was looked at. The table `derive_waiting`. Internal to storage, but for the
 * options. */
#ifndef STORAGE_VERSIONS_DERIVE_WAITING_H
#define STORAGE_VERSIONS_DERIVE_WAITING_H

#include "storage/core/store.h"
#include "storage/db/db.h"

struct derive_options {
	bool enabled;              /* false: none is noted, none is looked at */
	uint64_t bytes_per_second; /* of weights read; 0: as fast as it goes */
	uint64_t min_bytes;        /* smaller objects stay as they are */
	int64_t interval_ms;       /* between two looks at what waits; 0: a second */
};

/* Inside the change that commits a version: it waits from here on if it may be a checkpoint. */
int derive_waiting_note(struct store *store, struct db *db, int64_t version, struct span key,
	uint64_t size, struct error *err);
/* The first one above `after` that is not put off: 1, 0, -1. */
int derive_waiting_next(
	struct db *db, int64_t after, int64_t now_ms, int64_t *out_version, struct error *err);
/* It is not looked at before until_ms. */
int derive_waiting_put_off(struct db *db, int64_t version, int64_t until_ms, struct error *err);
int derive_waiting_remove(struct db *db, int64_t version, struct error *err);
int derive_waiting_count(struct db *db, int64_t *out_count, struct error *err);

#endif
