/* The reference of a request to a bucket. */
#ifndef STORAGE_BUCKETS_BUCKET_REF_H
#define STORAGE_BUCKETS_BUCKET_REF_H

#include "base/arena.h"

/* With an id (not 0) it means only the bucket that had this id when the name was looked up, because
 * the caller's rights were judged for that one. If another bucket has the name by now, calls fail
 * with no_bucket. */
struct bucket_ref {
	struct span name;
	int64_t id;
};
/* Any bucket that has the name. */
static inline struct bucket_ref bucket_named(struct span name)
{
	return (struct bucket_ref){.name = name};
}
static inline struct bucket_ref bucket_ref_copy(struct bucket_ref ref, struct arena *arena)
{
	return (struct bucket_ref){.name = arena_copy(arena, ref.name), .id = ref.id};
}

#endif
