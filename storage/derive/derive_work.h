/* Stores one waiting version as a delta of the head or the root of its series (derive_series.h), or
 * leaves it plain. Nothing that a reader sees changes. Internal to storage. */
#ifndef STORAGE_DERIVE_DERIVE_WORK_H
#define STORAGE_DERIVE_DERIVE_WORK_H

#include "storage/derive/derive_encode.h"

struct derive_outcome {
	bool is_swapped;
	uint64_t bytes_saved; /* the object's size less that of its delta */
};
/* Settles a version of `derive_waiting`, which then waits no more. It keeps waiting while a xorb of
 * a pack that it leads to is promised (xorb_row.h), and after a failure for a reason that may pass
 * (io, no_space, busy, no_memory). */
int derive_work(struct store *store, int64_t version, const struct work_pace *pace,
	struct derive_outcome *out, struct error *err);

#endif
