/* Tags and ACL of a version changed in place. */
#ifndef STORAGE_OBJECTS_OBJECT_CHANGE_H
#define STORAGE_OBJECTS_OBJECT_CHANGE_H

#include "storage/versions/object.h"

/* Changes that touch one version in place. no_bucket, no_key, no_version; method on a marker. */
struct object_change_params {
	struct span bucket;
	/* not 0: another bucket that has the name by now is left alone, with no_bucket */
	int64_t bucket_id;
	struct span key;
	struct version_ref ref;
	bool sets_tags;   /* replaces the tags: empty removes them */
	struct span tags; /* a tag_set */
	bool sets_acl;
	enum canned_acl acl;
	void (*done)(void *owner);
	void *owner;
};
struct object_change *object_change_start(
	struct store *store, const struct object_change_params *params);
/* texts live until free */
int object_change_outcome(struct object_change *change, struct object *out, struct error *err);
void object_change_free(struct object_change *change);

#endif
