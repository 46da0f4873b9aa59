/* The lifecycle rules of all buckets, in memory, so that replies about objects can name their
 * expiration without reading the catalog. Filled when the store opens. A change of a bucket updates
 * it before its caller learns of the change. Any thread. */
#ifndef STORAGE_BUCKETS_LIFECYCLE_CACHE_H
#define STORAGE_BUCKETS_LIFECYCLE_CACHE_H

#include "base/arena.h"
#include "storage/buckets/lifecycle.h"
#include "storage/db/db.h"

struct lifecycle_cache;

struct lifecycle_cache *lifecycle_cache_new(int64_t day_ms); /* day_ms is above 0 */
void lifecycle_cache_free(struct lifecycle_cache *cache);    /* NULL is fine */
int lifecycle_cache_load(struct lifecycle_cache *cache, struct db *db, struct error *err);
/* Sets the rules of a bucket to the document that is committed now; empty: none. An unreadable
 * document counts as none. */
void lifecycle_cache_set(struct lifecycle_cache *cache, struct span bucket, struct span document);

struct lifecycle_expiry {
	int64_t due_ms;
	struct span rule_id;
};
/* Tells when the object expires, and by which rule; its id lies in the arena. False when no rule
 * applies to it. `tags` is a tag_set; the tags of `subject` are not used. Costs one atomic load
 * while no bucket has rules. */
bool lifecycle_cache_expires(struct lifecycle_cache *cache, struct span bucket,
	const struct lifecycle_subject *subject, struct span tags, struct arena *arena,
	struct lifecycle_expiry *out);

#endif
