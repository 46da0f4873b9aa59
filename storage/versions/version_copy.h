/* A version on top of its key that shares the bytes of another. Segments are shared, inline bytes
 * and recipes copied; nothing else is read or written. Internal to storage. */
#ifndef STORAGE_VERSIONS_VERSION_COPY_H
#define STORAGE_VERSIONS_VERSION_COPY_H

#include "storage/versions/version.h"

struct version_copy_params {
	/* Without a row (sequence 0) it has no bytes, or leads to a part set. */
	const struct version *source;
	/* Of the copy's key, as for version_push. It may be `source`. */
	const struct version *current;
	enum bucket_versioning versioning; /* of the copy's bucket */
};
/* Inside a change, like version_push. `version` has all columns of the copy, with the contents of
 * the source. `arena` holds inline bytes for the time of the call. */
int version_copy_push(struct db *db, const struct version_copy_params *params,
	struct version *version, struct arena *arena, struct error *err);

#endif
