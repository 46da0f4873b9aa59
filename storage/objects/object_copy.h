/* A new version that shares the bytes of another. */
#ifndef STORAGE_OBJECTS_OBJECT_COPY_H
#define STORAGE_OBJECTS_OBJECT_COPY_H

#include "storage/objects/object_conditions.h"
#include "storage/objects/object_facts.h"

/* A new version that shares the bytes of another: no byte is read or written, unless a checksum
 * must be computed anew. */
struct object_copy;
struct object_copy_params { /* texts are copied */
	/* found and judged by the caller; a source removed meanwhile: no_key */
	const struct object *source;
	struct span bucket; /* of the copy; start fails as object_put_open does */
	struct span key;
	bool replaces_headers;            /* facts.headers count; else the source's are kept */
	bool replaces_tags;               /* facts.tags count; else the source's are kept */
	struct object_facts facts;        /* storage_class and acl always count */
	enum checksum_algorithm checksum; /* CHECKSUM_NONE: the source's is kept */
	struct object_conditions conditions;
	void (*done)(void *owner);
	void *owner;
};
struct object_copy *object_copy_start(
	struct store *store, const struct object_copy_params *params, struct error *err);
/* texts live until free */
int object_copy_outcome(struct object_copy *copy, struct object *out, struct error *err);
void object_copy_free(struct object_copy *copy);

#endif
