/* Gives a bucket another name or owner. */
#ifndef STORAGE_UPKEEP_BUCKET_RENAME_H
#define STORAGE_UPKEEP_BUCKET_RENAME_H

#include "storage/buckets/bucket.h"

/* The bucket keeps everything in it. Grants of keys name buckets by their names and do not
 * follow. */
struct bucket_rename {
	struct bucket_ref from;
	struct span to;      /* the caller has checked that it is a bucket name */
	struct span account; /* of the new owner */
};
/* 0, no_bucket; bucket_owned or bucket_taken: the new name is in use. */
struct call *bucket_rename_call(struct store *store, const struct bucket_rename *rename);

#endif
