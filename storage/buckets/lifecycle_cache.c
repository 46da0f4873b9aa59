/* A list sorted by bucket name. Most buckets have no rules, so the list is short. Each entry has an
 * arena of its own, so that replacing it frees its memory. */
#include "storage/buckets/lifecycle_cache.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/search.h"
#include "base/thread/lock.h"
#include "storage/buckets/bucket_document.h"
#include "storage/buckets/lifecycle_document.h"

enum { ENTRY_ARENA_BYTES = 8 * BUCKET_DOCUMENT_MAX_BYTES };

static const char SQL_LIFECYCLES[] =
	"SELECT b.name, d.document FROM bucket_documents d JOIN buckets b ON b.id = d.bucket WHERE d.kind = ?1 ORDER BY b.name";

struct entry {
	struct arena *arena; /* has the name and the rules */
	struct span bucket;
	struct lifecycle lifecycle;
};
struct lifecycle_cache {
	int64_t day_ms;
	atomic_size_t known; /* as `count`, to be read without the lock */
	struct lock lock;
	struct entry *entries; /* sorted by name; guarded by lock */
	size_t count;
	size_t capacity;
};

static size_t find(const struct lifecycle_cache *cache, struct span bucket, bool *out_is_there);
static bool entry_is_before(const void *entry, const void *bucket);
static void remove_at(struct lifecycle_cache *cache, size_t at);
static void insert_at(struct lifecycle_cache *cache, size_t at, const struct entry *entry);

struct lifecycle_cache *lifecycle_cache_new(int64_t day_ms)
{
	ASSERT(day_ms > 0);
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
	bool is_there;
	entry.bucket = arena_copy(entry.arena, bucket);
	const bool is_good =
		lifecycle_document_parse(document, entry.arena, &entry.lifecycle, &ignored) == 0 &&
		entry.lifecycle.count > 0;
	lock_enter(&cache->lock);
	const size_t at = find(cache, bucket, &is_there);
	if (is_there)
		remove_at(cache, at);
	if (is_good)
		insert_at(cache, at, &entry);
	atomic_store(&cache->known, cache->count);
	lock_leave(&cache->lock);
	if (!is_good)
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
	struct lifecycle_expiry *out)
{
	struct lifecycle_subject tagged = *subject;
	const struct lifecycle_rule *rule = NULL;
	struct tag *list = NULL;
	struct error ignored;
	bool is_there;
	if (atomic_load(&cache->known) == 0 ||
		tag_set_read(tags, arena, &list, &tagged.tag_count, &ignored) != 0)
		return false;
	tagged.tags = list;
	lock_enter(&cache->lock);
	const size_t at = find(cache, bucket, &is_there);
	const bool expires = is_there &&
		lifecycle_expires(
			&cache->entries[at].lifecycle, &tagged, cache->day_ms, &out->due_ms, &rule);
	if (expires)
		out->rule_id = arena_copy(arena, rule->id);
	lock_leave(&cache->lock);
	return expires;
}

/* Where the bucket is, or belongs. */
static size_t find(const struct lifecycle_cache *cache, struct span bucket, bool *out_is_there)
{
	lock_assert_held(&cache->lock);
	const size_t at = search_lower_bound(
		cache->entries, cache->count, sizeof(*cache->entries), entry_is_before, &bucket);
	*out_is_there = at < cache->count && span_equal(cache->entries[at].bucket, bucket);
	return at;
}

static bool entry_is_before(const void *entry, const void *bucket)
{
	return span_compare(((const struct entry *)entry)->bucket, *(const struct span *)bucket) <
		0;
}

static void remove_at(struct lifecycle_cache *cache, size_t at)
{
	ASSERT(at < cache->count);
	arena_free(cache->entries[at].arena);
	memmove(&cache->entries[at], &cache->entries[at + 1],
		(cache->count - at - 1) * sizeof(*cache->entries));
	cache->count--;
}

static void insert_at(struct lifecycle_cache *cache, size_t at, const struct entry *entry)
{
	ASSERT(at <= cache->count);
	cache->entries = memory_make_room(
		cache->entries, cache->count, &cache->capacity, sizeof(*cache->entries));
	memmove(&cache->entries[at + 1], &cache->entries[at],
		(cache->count - at) * sizeof(*cache->entries));
	cache->entries[at] = *entry;
	cache->count++;
}
