/* Which run a request means, and which runs a listing covers. */
#ifndef STORAGE_RUN_TABLES_RUN_REF_H
#define STORAGE_RUN_TABLES_RUN_REF_H

#include "storage/buckets/bucket_ref.h"

struct run_ref {
	struct bucket_ref bucket;
	struct span name;
};
/* The run that has these names, whichever it is. */
static inline struct run_ref run_named(struct span bucket, struct span name)
{
	return (struct run_ref){.bucket = bucket_named(bucket), .name = name};
}
static inline struct run_ref run_ref_copy(const struct run_ref *ref, struct arena *arena)
{
	return (struct run_ref){.bucket = bucket_ref_copy(ref->bucket, arena),
		.name = arena_copy(arena, ref->name)};
}

/* Up to `limit` runs of a bucket whose names follow `after`, in byte order. */
struct run_scan {
	struct bucket_ref bucket;
	struct span after;
	size_t limit;
};

#endif
