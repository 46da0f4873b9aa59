/* What the calls that change a bucket have in common: those of bucket.h, bucket_delete.h and
 * bucket_rename.h. Internal to storage. */
#ifndef STORAGE_BUCKETS_BUCKET_CHANGE_H
#define STORAGE_BUCKETS_BUCKET_CHANGE_H

#include "storage/buckets/bucket.h"
#include "storage/core/call.h"

struct bucket_change { /* all texts in the call's arena */
	struct call call;
	struct bucket_ref bucket;
	struct span account;   /* create, rename: of the owner */
	struct span new_name;  /* rename */
	struct span lifecycle; /* rename: the document that goes along */
	struct bucket_edit edit;
	bool too_large;
};
struct bucket_change *bucket_change_new(
	struct store *store, const struct call_kind *kind, struct bucket_ref ref);

/* Inside a change: whether a bucket may be called so. 0; bucket_owned, bucket_taken. */
int bucket_change_check_free(
	struct bucket_change *change, struct db *db, struct span name, struct error *err);

#endif
