/* Listings of a bucket: its current objects, in byte order of their keys. */
#ifndef STORAGE_OBJECTS_OBJECT_LIST_H
#define STORAGE_OBJECTS_OBJECT_LIST_H

#include "storage/versions/object.h"

/* One page of a listing in byte order of keys; with a delimiter, common prefixes are rolled up by
 * seeking past them. */
struct object_list_params {
	struct bucket_ref bucket;
	struct span prefix;
	struct span delimiter; /* empty: none */
	/* exclusive; keys and rolled-up prefixes at or below are skipped; one equal to a common
	 * prefix skips it whole */
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
/* no_bucket */
int object_list(struct store *store, const struct object_list_params *params, struct arena *arena,
	struct object_list *out, struct error *err);

#endif
