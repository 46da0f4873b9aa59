/* Looks into the index of a pinned pack, growing or not: xorbs, and what of a run of chunks is there. */
#include "storage/pack_cache_internal.h"

bool pack_cache_find_xorb(struct pack_cache *const cache, const struct pack *const pack, const uint32_t chunk, struct pack_xorb *const out)
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
	const bool found = from > 0 && chunk - index->xorbs[from - 1].first < index->xorbs[from - 1].count;
	if (found)
		*out = index->xorbs[from - 1];
	lock_leave(&cache->lock);
	return found;
}

/* The place in the list of the first entry with this number or a higher one. */
static uint32_t entry_from(const struct pack_index *const index, const uint32_t chunk)
{
	if (index->numbers == NULL)
		return chunk < index->count ? chunk : index->count;
	uint32_t from = 0;
	uint32_t to = index->count;
	while (from < to) {
		const uint32_t middle = from + (to - from) / 2;
		if (index->numbers[middle] < chunk)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

size_t pack_cache_copy_present(struct pack_cache *const cache, const struct pack *const pack, uint32_t *const from, const uint32_t end,
	struct pack_entry *const out, const size_t capacity)
{
	lock_enter(&cache->lock);
	const struct pack_index *const index = pack->index;
	size_t copied = 0;
	uint32_t at = entry_from(index, *from);
	while (at < index->count && copied < capacity && pack_index_number(index, at) < end) {
		*from = pack_index_number(index, at) + 1;
		out[copied++] = index->entries[at++];
	}
	lock_leave(&cache->lock);
	return copied;
}
