/* The lifecycle rules of all buckets that have some, in memory, so that replies about objects can
 * name their expiration without a look into the catalog. Filled when the store opens, kept up by
 * the changes to buckets before these say that they are done. Any thread. */
#ifndef STORAGE_BUCKETS_LIFECYCLE_CACHE_H
#define STORAGE_BUCKETS_LIFECYCLE_CACHE_H

#include "base/arena.h"
#include "storage/buckets/lifecycle.h"
#include "storage/db/db.h"

struct lifecycle_cache;

struct lifecycle_cache *lifecycle_cache_new(int64_t day_ms);
void lifecycle_cache_free(struct lifecycle_cache *cache); /* NULL is fine */
int lifecycle_cache_load(struct lifecycle_cache *cache, struct db *db, struct error *err);
/* The bucket's document as it is committed now; empty: none. One that cannot be read counts as
 * none. */
void lifecycle_cache_set(struct lifecycle_cache *cache, struct span bucket, struct span document);

/* When the object expires, and the rule's id in the arena; false when no rule of the bucket is
 * about it. Costs one atomic load when no bucket has rules. `tags`: a tag_set. */
bool lifecycle_cache_expires(struct lifecycle_cache *cache, struct span bucket,
	const struct lifecycle_subject *subject, struct span tags, struct arena *arena,
	int64_t *out_due_ms, struct span *out_rule_id);

#endif
