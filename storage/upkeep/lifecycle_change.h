/* Removes versions and uploads that a walk found due, in one change that judges each of them again.
 * Internal to storage. */
#ifndef STORAGE_UPKEEP_LIFECYCLE_CHANGE_H
#define STORAGE_UPKEEP_LIFECYCLE_CHANGE_H

#include "storage/buckets/lifecycle.h"
#include "storage/core/store.h"
#include "storage/uploads/upload.h"

enum { LIFECYCLE_CHANGE_ITEMS = 100 };

enum lifecycle_kind { LIFECYCLE_CURRENT, LIFECYCLE_OLDER, LIFECYCLE_UPLOAD };
struct lifecycle_item {
	enum lifecycle_kind kind;
	int64_t sequence; /* of a version */
	struct span key;  /* of an upload */
	struct upload_id upload;
};
struct lifecycle_batch {
	int64_t bucket;
	int64_t day_ms; /* how long a day is */
	const struct lifecycle_item *items;
	size_t count; /* up to LIFECYCLE_CHANGE_ITEMS */
};
/* Blocks until the change is committed, and adds to *removed how many went. Nothing happens to a
 * bucket that is gone or has no rules any more. */
int lifecycle_change_run(struct store *store, const struct lifecycle_batch *batch,
	uint64_t *removed, struct error *err);

#endif
