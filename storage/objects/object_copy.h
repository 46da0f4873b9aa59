/* Copies an object: a new version that shares the bytes of another. */
#ifndef STORAGE_OBJECTS_OBJECT_COPY_H
#define STORAGE_OBJECTS_OBJECT_COPY_H

#include "storage/objects/object_conditions.h"
#include "storage/objects/object_facts.h"

/* Bytes are read only when a checksum must be computed; none are written. */
struct object_copy_params { /* texts are copied */
	/* Found and authorised by the caller; no_key when it was removed since. */
	const struct object *source;
	struct bucket_ref bucket; /* of the copy */
	struct span key;
	bool replaces_headers;            /* with facts.headers; false: the source's are kept */
	bool replaces_tags;               /* with facts.tags; false: the source's are kept */
	struct object_facts facts;        /* storage_class and acl always apply */
	enum checksum_algorithm checksum; /* CHECKSUM_NONE: the source's is kept */
	struct object_conditions conditions;
};
/* Makes a call (storage/core/call.h) on the bucket that has the name now. NULL with the errors of
 * object_put_open. */
struct call *object_copy_call(
	struct store *store, const struct object_copy_params *params, struct error *err);
/* After the call: 0 and the copy, whose texts live as long as the call, or -1 with the call's
 * failure. */
int object_copy_result(const struct call *call, struct object *out, struct error *err);

#endif
