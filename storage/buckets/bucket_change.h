/* A change of a bucket on its way through the committer: what those of bucket.h, bucket_delete.h
 * and bucket_rename.h have in common. Internal to storage. */
#ifndef STORAGE_BUCKETS_BUCKET_CHANGE_H
#define STORAGE_BUCKETS_BUCKET_CHANGE_H

#include "storage/buckets/bucket.h"
#include "storage/core/committer.h"

struct bucket_change {
	struct change change; /* first */
	struct store *store;
	struct arena *arena;
	struct span name;
	struct span account;     /* create, rename: of the owner */
	struct span new_name;    /* rename */
	struct span lifecycle;   /* rename: the document that goes along */
	struct bucket_edit edit; /* texts in the arena */
	bool too_large;
	/* On the committer, once it is committed, before `done`: whoever hears of the change finds
	 * the lifecycle rules in force. NULL: nothing. */
	void (*settle)(struct bucket_change *change);
	void (*done)(void *owner);
	void *owner;
};
struct bucket_change *bucket_change_new(
	struct store *store, struct span name, void (*done)(void *owner), void *owner);
void bucket_change_submit(struct bucket_change *change,
	int (*apply)(struct change *change, struct db *db, struct error *err));

/* Inside a change: whether a bucket may be called so. 0; bucket_owned, bucket_taken. */
int bucket_change_check_free(
	struct bucket_change *change, struct db *db, struct span name, struct error *err);

#endif
