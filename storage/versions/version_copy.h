/* A version on top of its key that shares the bytes of another. Segments are shared, inline bytes
 * and recipes copied; nothing else is read or written. Internal to storage. */
#ifndef STORAGE_VERSIONS_VERSION_COPY_H
#define STORAGE_VERSIONS_VERSION_COPY_H

#include "storage/versions/version.h"

/* Inside a change, like version_push. `version` has all columns of the copy, with the contents of
 * `source`. `source` may be `current`. A source without a row (sequence 0) has no bytes, or leads
 * to a part set. `arena` holds inline bytes for the time of the call. */
int version_copy_push(struct db *db, enum bucket_versioning versioning,
	const struct version *source, const struct version *current, struct version *version,
	struct arena *arena, struct error *err);

#endif
