/* Buckets. Creating and deleting are changes; reading goes through a reader. */
#ifndef STORAGE_BUCKET_H
#define STORAGE_BUCKET_H

#include "base/arena.h"
#include "storage/store.h"

/* Numbers are stored in the catalog. */
enum bucket_versioning { BUCKET_UNVERSIONED = 0, BUCKET_VERSIONED = 1, BUCKET_SUSPENDED = 2 };
enum etag_policy { ETAG_DEFAULT = 0, ETAG_MD5 = 1, ETAG_FAST = 2 }; /* default: the server's */

struct bucket {
	int64_t id;
	struct span name;
	struct span owner; /* namespace of the account */
	int64_t created_ms;
	enum bucket_versioning versioning;
	enum etag_policy etag_policy;
};

/* The naming rules for creation (s3.md 3): bad_name with the rule that broke. `namespace` is the caller's: a name with "--" must begin with
 * it. */
int bucket_check_name(struct span name, struct span namespace, struct error *err);
/* no_bucket when absent. Texts lie in the arena. */
int bucket_find(struct store *store, struct span name, struct arena *arena, struct bucket *out, struct error *err);
/* Up to `limit` buckets after `after` in byte order, whose name begins with `prefix`; `owner` empty: everybody's. */
int bucket_list(struct store *store, struct span owner, struct span prefix, struct span after, size_t limit, struct arena *arena,
	struct bucket **out, size_t *out_count, struct error *err);

/* Asynchronous: `done(owner)` comes once the outcome is known (from the committer); then ask bucket_change_outcome and free. */
struct bucket_change;
struct bucket_change *bucket_create_start(struct store *store, struct span name, struct span account, void (*done)(void *owner),
	void *owner);
struct bucket_change *bucket_delete_start(struct store *store, struct span name, void (*done)(void *owner), void *owner);
/* create: 0, bucket_owned (the same account has it) or bucket_taken. delete: 0, no_bucket, bucket_not_empty, bucket_has_runs. */
int bucket_change_outcome(struct bucket_change *change, struct error *err);
void bucket_change_free(struct bucket_change *change);

#endif
