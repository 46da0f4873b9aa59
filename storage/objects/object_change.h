/* Changes the tags and the ACL of a version. */
#ifndef STORAGE_OBJECTS_OBJECT_CHANGE_H
#define STORAGE_OBJECTS_OBJECT_CHANGE_H

#include "storage/versions/object.h"

struct object_change_params { /* texts are copied */
	struct object_ref object;
	bool sets_tags;   /* replaces the tags; empty `tags` remove them */
	struct span tags; /* a tag_set */
	bool sets_acl;
	enum canned_acl acl;
};
/* Makes a call (storage/core/call.h). It fails with no_bucket, no_key or no_version, and with
 * method for a delete marker. */
struct call *object_change_call(struct store *store, const struct object_change_params *params);
/* After the call: 0 and the changed version, whose texts live as long as the call, or -1 with the
 * call's failure. */
int object_change_result(const struct call *call, struct object *out, struct error *err);

#endif
