/* Looks for the current objects of a bucket whose keys contain a text. Every key below the prefix
 * is read, so one call reads a bounded number of them and says where the next one goes on. Any
 * thread. */
#ifndef STORAGE_OBJECTS_OBJECT_SEARCH_H
#define STORAGE_OBJECTS_OBJECT_SEARCH_H

#include "storage/core/call.h"
#include "storage/versions/object.h"

enum { OBJECT_SEARCH_LIMIT_MAX = 1000, OBJECT_SEARCH_KEYS_MAX = 50000 };

struct object_search_params {
	struct bucket_ref bucket;
	struct span prefix;
	struct span contains; /* bytes of the key behind the prefix; empty: every key */
	struct span after;    /* exclusive */
	size_t limit;         /* 1 to OBJECT_SEARCH_LIMIT_MAX */
};
struct object_search {
	struct object_entry *entries; /* in byte order of their keys */
	size_t count;
	uint64_t scanned; /* keys that were read */
	bool more;        /* the search has not reached the last key */
	struct span last; /* with `more`: `after` of the next call */
};

/* A call (storage/core/call.h). no_bucket; invalid: a text that is too long for a key. */
struct call *object_search_call(struct store *store, const struct object_search_params *params);
/* After its success; lives as long as the call. */
const struct object_search *object_search_result(const struct call *call);

#endif
