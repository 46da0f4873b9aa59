/* A hidden version that shares the bytes of another; none of them is read or written. For objects
 * that the server shows under keys of its own. Internal to storage. */
#ifndef STORAGE_VERSIONS_VERSION_SHARE_H
#define STORAGE_VERSIONS_VERSION_SHARE_H

#include "storage/versions/version.h"

struct version_share {
	const struct version *source; /* found with its texts (an arena) */
	int64_t bucket;
	struct span key;
	int64_t modified_ms;
};
/* Inside a change. The version must be named (step_pin_add) or shown in the same change. `arena`
 * holds inline bytes for the time of the call. */
int version_share(struct db *db, const struct version_share *share, struct arena *arena,
	struct version *out, struct error *err);

#endif
