/* Deletes keys and versions. */
#ifndef STORAGE_OBJECTS_OBJECT_DELETE_H
#define STORAGE_OBJECTS_OBJECT_DELETE_H

#include "storage/objects/object_conditions.h"

/* A call deletes one key or a list of up to OBJECT_DELETE_MAX. A long list takes several
 * changes. */
enum { OBJECT_DELETE_MAX = 1000 };
struct object_delete_item {
	struct span key;
	/* VERSION_REF_CURRENT: the key itself, by the bucket's versioning (version_push,
	 * version_remove). */
	struct version_ref ref;
	struct object_conditions conditions;
	/* The outcome, with the fields below. ERROR_NONE: done; deleting a key or version that does
	 * not exist is done too. */
	struct error error;
	bool is_marker; /* a marker was made or removed */
	/* `version` is set: `ref` names one, or the bucket has or had versioning */
	bool has_version;
	char version[VERSION_TEXT_BYTES]; /* the version that was made (without ref) or removed */
};
struct object_delete_params {
	struct bucket_ref bucket;
	/* They and their texts must live until the call has ended, which writes the outcomes into
	 * them. */
	struct object_delete_item *items;
	size_t count;
};
/* Makes a call (storage/core/call.h). The call itself fails only for a reason that concerns the
 * whole list: no_bucket, io and the like. */
struct call *object_delete_call(struct store *store, const struct object_delete_params *params);

#endif
