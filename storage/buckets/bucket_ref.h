/* Which bucket a request speaks of. */
#ifndef STORAGE_BUCKETS_BUCKET_REF_H
#define STORAGE_BUCKETS_BUCKET_REF_H

#include "base/arena.h"

/* With an id (not 0) it is the one that had this id when the name was looked up: that is what the
 * caller was let into, and another bucket that has the name by now is left alone, with
 * no_bucket. */
struct bucket_ref {
	struct span name;
	int64_t id;
};
/* Whatever bucket has the name. */
static inline struct bucket_ref bucket_named(struct span name)
{
	return (struct bucket_ref){.name = name};
}
static inline struct bucket_ref bucket_ref_copy(struct bucket_ref ref, struct arena *arena)
{
	return (struct bucket_ref){.name = arena_copy(arena, ref.name), .id = ref.id};
}

#endif
