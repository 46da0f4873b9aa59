/* Versions and keys deleted. */
#ifndef STORAGE_OBJECTS_OBJECT_DELETE_H
#define STORAGE_OBJECTS_OBJECT_DELETE_H

#include "storage/objects/object_conditions.h"

/* Deletes one key or a list of up to OBJECT_DELETE_MAX; a long list is several changes. */
enum { OBJECT_DELETE_MAX = 1000 };
struct object_delete_item {
	struct span key;
	/* VERSION_REF_CURRENT: as s3.md 5.5 says for the bucket's versioning */
	struct version_ref ref;
	struct object_conditions conditions;
	/* the outcome, and what follows. Kind ERROR_NONE: done; an absent key or version is done
	 * too */
	struct error error;
	bool is_marker;   /* a marker was made, or one was removed */
	bool has_version; /* `ref` names one, or the bucket has or had versioning: */
	char version[VERSION_TEXT_BYTES]; /* made (without ref) or removed */
};
struct object_delete_params {
	struct bucket_ref bucket;
	/* the caller's, alive with their texts until the call has ended; outcomes are written into
	 * them */
	struct object_delete_item *items;
	size_t count;
};
/* A call (storage/core/call.h). It fails with what befell the whole: no_bucket, io... */
struct call *object_delete_call(struct store *store, const struct object_delete_params *params);

#endif
