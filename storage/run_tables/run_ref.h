/* Which run a request speaks of, and which runs a listing. */
#ifndef STORAGE_RUN_TABLES_RUN_REF_H
#define STORAGE_RUN_TABLES_RUN_REF_H

#include "storage/buckets/bucket_ref.h"

struct run_ref {
	struct bucket_ref bucket;
	struct span name;
};
/* Whatever run has these names. */
static inline struct run_ref run_named(struct span bucket, struct span name)
{
	return (struct run_ref){.bucket = bucket_named(bucket), .name = name};
}
static inline struct run_ref run_ref_copy(const struct run_ref *ref, struct arena *arena)
{
	return (struct run_ref){.bucket = bucket_ref_copy(ref->bucket, arena),
		.name = arena_copy(arena, ref->name)};
}

/* Up to `limit` runs of a bucket behind `after`, in byte order of their names. */
struct run_scan {
	struct bucket_ref bucket;
	struct span after;
	size_t limit;
};

#endif
