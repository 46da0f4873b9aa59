/* Lists all versions and delete markers of a bucket. */
#ifndef STORAGE_VERSIONS_VERSION_LIST_H
#define STORAGE_VERSIONS_VERSION_LIST_H

#include "storage/versions/object.h"

/* One page: keys in byte order, the newest version first within a key. With a delimiter, common
 * prefixes are rolled up (object_list.h). */
struct version_list_params {
	struct bucket_ref bucket;
	struct span prefix;
	struct span delimiter;
	/* Exclusive, like object_list_params.after. With after_version, the versions of this key
	 * that come behind that one follow. */
	struct span after_key;
	struct version_ref after_version; /* VERSION_REF_CURRENT: none */
	size_t limit;
};
struct version_list {
	struct version_entry {
		struct object_entry object; /* a marker has only key and modified_ms */
		char version[VERSION_TEXT_BYTES];
		bool is_marker;
		bool is_latest;
	} * entries;
	size_t entry_count;
	struct span *prefixes;
	size_t prefix_count;
	bool truncated;
	struct span last_key;                  /* of the last entry or prefix on the page */
	char last_version[VERSION_TEXT_BYTES]; /* "" when that is a prefix */
};
int version_list(struct store *store, const struct version_list_params *params, struct arena *arena,
	struct version_list *out, struct error *err);

#endif
