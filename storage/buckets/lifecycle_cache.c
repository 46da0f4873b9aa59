#include "storage/buckets/lifecycle_cache.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread/lock.h"
#include "storage/buckets/bucket_document.h"
#include "storage/buckets/lifecycle_document.h"

enum { ENTRY_ARENA_BYTES = 8 * BUCKET_DOCUMENT_MAX_BYTES };

static const char SQL_LIFECYCLES[] =
	"SELECT b.name, d.document FROM bucket_documents d JOIN buckets b ON b.id = d.bucket WHERE d.kind = ?1 ORDER BY b.name";

struct entry {
	struct arena *arena; /* the name and the rules */
	struct span bucket;
	struct lifecycle lifecycle;
};
struct lifecycle_cache {
	int64_t day_ms;
	atomic_size_t known; /* entries: read without the lock */
	struct lock lock;
	struct entry *entries; /* by name; guarded by lock */
	size_t count;
	size_t capacity;
};

static size_t find(const struct lifecycle_cache *cache, struct span bucket, bool *out_there);
static void remove_at(struct lifecycle_cache *cache, size_t at);
static void insert_at(struct lifecycle_cache *cache, size_t at, const struct entry *entry);

struct lifecycle_cache *lifecycle_cache_new(int64_t day_ms)
{
	struct lifecycle_cache *const cache = memory_new(sizeof(*cache));
	cache->day_ms = day_ms;
	lock_init(&cache->lock, LOCK_LIFECYCLE);
	return cache;
}

void lifecycle_cache_free(struct lifecycle_cache *cache)
{
	if (cache == NULL)
		return;
	for (size_t i = 0; i < cache->count; i++)
		arena_free(cache->entries[i].arena);
	free(cache->entries);
	lock_release(&cache->lock);
	free(cache);
}

void lifecycle_cache_set(struct lifecycle_cache *cache, struct span bucket, struct span document)
{
	struct entry entry = {.arena = arena_new(ENTRY_ARENA_BYTES)};
	struct error ignored;
	bool there;
	entry.bucket = arena_copy(entry.arena, bucket);
	const bool good =
		lifecycle_document_parse(document, entry.arena, &entry.lifecycle, &ignored) == 0 &&
		entry.lifecycle.count > 0;
	lock_enter(&cache->lock);
	const size_t at = find(cache, bucket, &there);
	if (there)
		remove_at(cache, at);
	if (good)
		insert_at(cache, at, &entry);
	atomic_store(&cache->known, cache->count);
	lock_leave(&cache->lock);
	if (!good)
		arena_free(entry.arena);
}

int lifecycle_cache_load(struct lifecycle_cache *cache, struct db *db, struct error *err)
{
	struct db_statement *const statement =
		db_query(db, SQL_LIFECYCLES, err, db_i64(BUCKET_LIFECYCLE));
	int got;
	while ((got = db_step(statement, err)) == 1)
		lifecycle_cache_set(
			cache, db_column_blob(statement, 0), db_column_blob(statement, 1));
	db_reset(statement);
	return got;
}

bool lifecycle_cache_expires(struct lifecycle_cache *cache, struct span bucket,
	const struct lifecycle_subject *subject, struct span tags, struct arena *arena,
	int64_t *out_due_ms, struct span *out_rule_id)
{
	struct lifecycle_subject tagged = *subject;
	const struct lifecycle_rule *rule = NULL;
	struct tag *list = NULL;
	struct error ignored;
	bool there;
	if (atomic_load(&cache->known) == 0 ||
		tag_set_read(tags, arena, &list, &tagged.tag_count, &ignored) != 0)
		return false;
	tagged.tags = list;
	lock_enter(&cache->lock);
	const size_t at = find(cache, bucket, &there);
	const bool expires = there &&
		lifecycle_expires(
			&cache->entries[at].lifecycle, &tagged, cache->day_ms, out_due_ms, &rule);
	if (expires)
		*out_rule_id = arena_copy(arena, rule->id);
	lock_leave(&cache->lock);
	return expires;
}

/* Where the bucket is, or belongs. */
static size_t find(const struct lifecycle_cache *cache, struct span bucket, bool *out_there)
{
	size_t low = 0;
	size_t high = cache->count;
	*out_there = false;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const int order = span_compare(cache->entries[middle].bucket, bucket);
		if (order == 0)
			*out_there = true;
		if (order >= 0)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void remove_at(struct lifecycle_cache *cache, size_t at)
{
	arena_free(cache->entries[at].arena);
	memmove(&cache->entries[at], &cache->entries[at + 1],
		(cache->count - at - 1) * sizeof(*cache->entries));
	cache->count--;
}

static void insert_at(struct lifecycle_cache *cache, size_t at, const struct entry *entry)
{
	if (cache->count == cache->capacity) {
		cache->capacity = cache->capacity == 0 ? 16 : 2 * cache->capacity;
		cache->entries =
			memory_grow(cache->entries, cache->capacity, sizeof(*cache->entries));
	}
	memmove(&cache->entries[at + 1], &cache->entries[at],
		(cache->count - at) * sizeof(*cache->entries));
	cache->entries[at] = *entry;
	cache->count++;
}
