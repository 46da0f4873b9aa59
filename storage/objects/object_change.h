/* Tags and ACL of a version changed in place. */
#ifndef STORAGE_OBJECTS_OBJECT_CHANGE_H
#define STORAGE_OBJECTS_OBJECT_CHANGE_H

#include "storage/versions/object.h"

struct object_change_params { /* texts are copied */
	struct object_ref object;
	bool sets_tags;   /* replaces the tags: empty removes them */
	struct span tags; /* a tag_set */
	bool sets_acl;
	enum canned_acl acl;
};
/* A call (storage/core/call.h). no_bucket, no_key, no_version; method on a marker. */
struct call *object_change_call(struct store *store, const struct object_change_params *params);
/* After it: 0 and the version as it is now, whose texts live as long as the call; or -1 with the
 * call's failure. */
int object_change_result(const struct call *call, struct object *out, struct error *err);

#endif
