/* The struct that all calls share that change a bucket: those of bucket.h, bucket_delete.h and
 * bucket_rename.h. Internal to storage. */
#ifndef STORAGE_BUCKETS_BUCKET_CHANGE_H
#define STORAGE_BUCKETS_BUCKET_CHANGE_H

#include "storage/buckets/bucket.h"
#include "storage/core/call.h"

struct bucket_change { /* all texts lie in the call's arena */
	struct call call;
	struct bucket_ref bucket;
	struct span account;   /* create, rename: the namespace of the owner */
	struct span new_name;  /* rename */
	struct span lifecycle; /* rename: the document of the lifecycle rules, for their cache */
	struct bucket_edit edit;
	bool too_large;
};
struct bucket_change *bucket_change_new(
	struct store *store, const struct call_kind *kind, struct bucket_ref ref);

/* Inside a change: checks that no bucket has the name. bucket_owned, bucket_taken. */
int bucket_change_check_free(
	struct bucket_change *change, struct db *db, struct span name, struct error *err);

#endif
