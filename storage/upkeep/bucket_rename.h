/* A bucket that gets another name, or another owner. Told of as bucket.h says. */
#ifndef STORAGE_UPKEEP_BUCKET_RENAME_H
#define STORAGE_UPKEEP_BUCKET_RENAME_H

#include "storage/buckets/bucket.h"

/* The same bucket with all it holds. Keys' grants name buckets by their names and do not follow. */
struct bucket_rename {
	struct span from;
	struct span to;      /* checked by the caller */
	struct span account; /* of the new owner */
	int64_t bucket_id;   /* as in bucket_edit */
};
/* 0, no_bucket, bucket_owned or bucket_taken (the new name is in use). */
struct bucket_change *bucket_rename_start(struct store *store, const struct bucket_rename *rename,
	void (*done)(void *owner), void *owner);

#endif
