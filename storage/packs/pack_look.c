/* Looks into the index of a pinned pack, growing or not: its xorbs, and the present chunks of a
 * run. */
#include "base/search.h"
#include "storage/packs/pack_cache_internal.h"

static bool pack_xorb_begins_by(const void *element, const void *chunk);

bool pack_cache_find_xorb(
	struct pack_cache *cache, const struct pack *pack, uint32_t chunk, struct pack_xorb *out)
{
	lock_enter(&cache->lock);
	ASSERT(pack->pins > 0 && pack->index != NULL);
	const struct pack_index *const index = pack->index;
	const size_t behind = search_lower_bound(index->xorbs, index->xorb_count,
		sizeof(*index->xorbs), pack_xorb_begins_by, &chunk);
	const struct pack_xorb *const last = behind > 0 ? &index->xorbs[behind - 1] : NULL;
	const bool found = last != NULL && chunk - last->first < last->count;
	if (found)
		*out = *last;
	lock_leave(&cache->lock);
	return found;
}

size_t pack_cache_copy_present(struct pack_cache *cache, const struct pack *pack, uint32_t *from,
	uint32_t end, struct pack_entry *out, size_t capacity)
{
	lock_enter(&cache->lock);
	ASSERT(pack->pins > 0 && pack->index != NULL);
	const struct pack_index *const index = pack->index;
	size_t copied = 0;
	uint32_t at = pack_index_at(index, *from);
	while (at < index->count && copied < capacity && pack_index_number(index, at) < end) {
		*from = pack_index_number(index, at) + 1;
		out[copied++] = index->entries[at++];
	}
	lock_leave(&cache->lock);
	return copied;
}

static bool pack_xorb_begins_by(const void *element, const void *chunk)
{
	return ((const struct pack_xorb *)element)->first <= *(const uint32_t *)chunk;
}
