/* What the keys below a prefix take, by the next level of their names: the sums that a listing with
 * the delimiter '/' does not give. Every version below the prefix is read, so one call reads a
 * bounded number of them; the calls that follow go on where it stopped, and what they give adds up.
 * First come the current objects, then the older versions. Any thread. */
#ifndef STORAGE_OBJECTS_OBJECT_USAGE_H
#define STORAGE_OBJECTS_OBJECT_USAGE_H

#include "storage/core/call.h"
#include "storage/versions/object.h"

enum { OBJECT_USAGE_LIMIT_MAX = 1000, OBJECT_USAGE_ROWS_MAX = 50000 };

struct object_usage_params {
	struct bucket_ref bucket;
	struct span prefix;
	struct span
		after; /* `next` of the call before, with the same prefix; empty: from the start */
	size_t limit;  /* entries, 1 to OBJECT_USAGE_LIMIT_MAX */
	bool counts_older; /* false: older versions are left out */
};
struct object_usage_entry {
	struct span name; /* behind the prefix; that of a folder ends with its '/' */
	bool is_folder;
	uint64_t objects;
	uint64_t bytes;
	int64_t modified_ms; /* of the newest */
};
struct object_usage {
	uint64_t objects; /* current ones, in all entries */
	uint64_t bytes;
	bool has_older;          /* the params' counts_older */
	uint64_t older_versions; /* versions that are not current, delete markers among them */
	uint64_t older_bytes;
	/* In byte order. A folder that a call could not read to its end is the first entry of the
	 * next one again. */
	struct object_usage_entry *entries;
	size_t count;
	bool complete;    /* everything was read, in this call and those before */
	struct span next; /* unless complete: printable ASCII */
};

/* A call (storage/core/call.h). no_bucket; invalid: `after` is not a `next`, or a text is too long
 * for a key. */
struct call *object_usage_call(struct store *store, const struct object_usage_params *params);
/* After its success; lives as long as the call. */
const struct object_usage *object_usage_result(const struct call *call);

#endif
