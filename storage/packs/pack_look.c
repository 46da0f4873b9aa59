/* Looks into the index of a pinned pack, growing or not: xorbs, and what of a run of chunks is
 * there. */
#include "storage/packs/pack_cache_internal.h"

bool pack_cache_find_xorb(
	struct pack_cache *cache, const struct pack *pack, uint32_t chunk, struct pack_xorb *out)
{
	lock_enter(&cache->lock);
	const struct pack_index *const index = pack->index;
	uint32_t from = 0;
	uint32_t to = index->xorb_count;
	while (from < to) { /* the first that begins behind the chunk */
		const uint32_t middle = from + (to - from) / 2;
		if (index->xorbs[middle].first <= chunk)
			from = middle + 1;
		else
			to = middle;
	}
	const bool found =
		from > 0 && chunk - index->xorbs[from - 1].first < index->xorbs[from - 1].count;
	if (found)
		*out = index->xorbs[from - 1];
	lock_leave(&cache->lock);
	return found;
}

size_t pack_cache_copy_present(struct pack_cache *cache, const struct pack *pack, uint32_t *from,
	uint32_t end, struct pack_entry *out, size_t capacity)
{
	lock_enter(&cache->lock);
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
