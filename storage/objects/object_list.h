/* Lists the current objects of a bucket in byte order of their keys. */
#ifndef STORAGE_OBJECTS_OBJECT_LIST_H
#define STORAGE_OBJECTS_OBJECT_LIST_H

#include "storage/versions/object.h"

/* One page. With a delimiter, common prefixes are rolled up by seeking past them. */
struct object_list_params {
	struct bucket_ref bucket;
	struct span prefix;
	struct span delimiter; /* empty: none */
	/* Exclusive: keys and rolled-up prefixes up to this one are skipped. One that equals a
	 * common prefix skips that prefix whole. */
	struct span after;
	size_t limit; /* keys and prefixes together */
};
struct object_list {
	struct object_entry *entries;
	size_t entry_count;
	struct span *prefixes;
	size_t prefix_count;
	bool truncated;
	struct span last; /* `after` of the next page */
};
/* Fails with no_bucket, among others. */
int object_list(struct store *store, const struct object_list_params *params, struct arena *arena,
	struct object_list *out, struct error *err);

#endif
