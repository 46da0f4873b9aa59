/* The facts of a new version besides its bytes. */
#ifndef STORAGE_OBJECTS_OBJECT_FACTS_H
#define STORAGE_OBJECTS_OBJECT_FACTS_H

#include "storage/versions/object.h"

/* For PutObject, CopyObject and CreateMultipartUpload, which copy the texts. */
struct object_facts {
	const struct object_header *headers;
	size_t header_count;
	struct span tags; /* a tag_set; empty: none */
	enum storage_class storage_class;
	enum canned_acl acl;
};
/* metadata_too_large, key_too_long, invalid. */
int object_facts_check(const struct object_facts *facts, struct span key, struct error *err);
/* Whether an object can have the key: key_too_long, invalid. */
int object_facts_check_key(struct span key, struct error *err);

#endif
