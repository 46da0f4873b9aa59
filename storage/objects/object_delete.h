/* Versions and keys deleted. */
#ifndef STORAGE_OBJECTS_OBJECT_DELETE_H
#define STORAGE_OBJECTS_OBJECT_DELETE_H

#include "storage/objects/object_conditions.h"

/* Deletes one key or a list of up to OBJECT_DELETE_MAX; a long list is several changes. */
enum { OBJECT_DELETE_MAX = 1000 };
struct object_delete_item {
	struct span key;
	struct version_ref ref;        /* VERSION_REF_CURRENT: as s3.md 5.5 says for the bucket's versioning */
	struct object_conditions conditions;
	struct error error;            /* the outcome, and what follows. Kind ERROR_NONE: done; an absent key or version is done too */
	bool is_marker;                /* a marker was made, or one was removed */
	bool has_version;              /* `ref` names one, or the bucket has or had versioning: */
	char version[VERSION_TEXT_BYTES]; /* made (without ref) or removed */
};
struct object_delete_params {
	struct span bucket;
	int64_t bucket_id; /* not 0: another bucket that has the name by now is left alone, with no_bucket */
	struct object_delete_item *items; /* the caller's, alive with their texts until done; outcomes are written into them */
	size_t count;
	void (*done)(void *owner);
	void *owner;
};
struct object_delete *object_delete_start(struct store *store, const struct object_delete_params *params);
int object_delete_outcome(struct object_delete *change, struct error *err); /* what befell the whole: no_bucket, io... */
void object_delete_free(struct object_delete *change);

#endif
