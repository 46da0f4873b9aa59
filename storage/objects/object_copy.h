/* A new version that shares the bytes of another. */
#ifndef STORAGE_OBJECTS_OBJECT_COPY_H
#define STORAGE_OBJECTS_OBJECT_COPY_H

#include "storage/objects/object_conditions.h"
#include "storage/objects/object_facts.h"

/* No byte is read or written, unless a checksum must be computed anew. */
struct object_copy_params { /* texts are copied */
	/* found and judged by the caller; a source removed meanwhile: no_key */
	const struct object *source;
	struct bucket_ref bucket; /* of the copy */
	struct span key;
	bool replaces_headers;            /* facts.headers count; else the source's are kept */
	bool replaces_tags;               /* facts.tags count; else the source's are kept */
	struct object_facts facts;        /* storage_class and acl always count */
	enum checksum_algorithm checksum; /* CHECKSUM_NONE: the source's is kept */
	struct object_conditions conditions;
};
/* A call (storage/core/call.h), of the bucket that there is now. NULL with the error set: as
 * object_put_open. */
struct call *object_copy_call(
	struct store *store, const struct object_copy_params *params, struct error *err);
/* After it: 0 and the copy, whose texts live as long as the call; or -1 with the call's failure. */
int object_copy_result(const struct call *call, struct object *out, struct error *err);

#endif
