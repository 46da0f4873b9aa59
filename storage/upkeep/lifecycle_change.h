/* What becomes of versions and uploads that a walk found due: one change of some dozen, each judged
 * again. Internal to storage. */
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
/* Blocks until it is committed. Adds to *removed what went. A bucket that is gone, or has no rules
 * any more: nothing. */
int lifecycle_change_run(struct store *store, int64_t bucket, int64_t day_ms,
	const struct lifecycle_item *items, size_t count, uint64_t *removed, struct error *err);

#endif
