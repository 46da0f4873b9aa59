/* One waiting version held against the root and the head of its series (derive_series.h): encoded,
 * proven, swapped; or left plain. Nothing that a reader sees changes. Internal to storage. */
#ifndef STORAGE_DERIVE_DERIVE_WORK_H
#define STORAGE_DERIVE_DERIVE_WORK_H

#include "storage/derive/derive_encode.h"

struct derive_outcome {
	bool is_swapped;
	uint64_t bytes_saved; /* of the object: its size less that of the delta */
};
/* Settles a version of `derive_waiting`: it waits no more, unless packs that it leads to are
 * promised (xorb_row.h: it waits until they are not), or this fails for reasons that may pass (io,
 * no_space, busy, no_memory). */
int derive_work(struct store *store, int64_t version, const struct work_pace *pace,
	struct derive_outcome *out, struct error *err);

#endif
