/* The checked chunks of a pack: those that were read since the start and found right. One bit for
 * each is in the pack's node, so that it outlives the index. */
#include "storage/packs/pack_cache_internal.h"

#include <string.h>

#include "base/memory.h"

static bool has_bits(const struct pack *pack, uint32_t first, uint32_t count);
static bool has_bit(const struct pack *pack, uint32_t chunk);
static void make_room(struct pack *pack, uint32_t end);

bool pack_cache_is_checked(
	struct pack_cache *cache, const struct pack_id *id, uint32_t first, uint32_t count)
{
	lock_enter(&cache->lock);
	const struct pack *pack = *pack_cache_link(cache, id);
	bool is_checked =
		pack != NULL && pack->known && (pack->is_checked || has_bits(pack, first, count));
	lock_leave(&cache->lock);
	return is_checked;
}

void pack_cache_set_checked(
	struct pack_cache *cache, const struct pack_id *id, uint32_t first, uint32_t count)
{
	ASSERT(count <= PACK_MAX_CHUNKS && first <= PACK_MAX_CHUNKS - count);
	lock_enter(&cache->lock);
	struct pack *pack = *pack_cache_link(cache, id);
	if (pack != NULL && pack->known && !pack->is_checked) {
		make_room(pack, first + count);
		for (uint32_t i = first; i < first + count; i++)
			pack->checked[i / 8] |= (uint8_t)(1 << (i % 8));
	}
	lock_leave(&cache->lock);
}

void pack_cache_doubt(struct pack_cache *cache, const struct pack_id *id)
{
	lock_enter(&cache->lock);
	struct pack *pack = *pack_cache_link(cache, id);
	if (pack != NULL) {
		pack->is_checked = false;
		if (pack->checked != NULL)
			memset(pack->checked, 0, pack->checked_bytes);
	}
	lock_leave(&cache->lock);
}

static bool has_bits(const struct pack *pack, uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!has_bit(pack, first + i))
			return false;
	return true;
}

static bool has_bit(const struct pack *pack, uint32_t chunk)
{
	return chunk / 8 < pack->checked_bytes &&
		(pack->checked[chunk / 8] >> (chunk % 8) & 1) != 0;
}

/* Small packs have few chunks, so the bits grow with the highest number. */
static void make_room(struct pack *pack, uint32_t end)
{
	uint32_t bytes = (end + 7) / 8;
	if (bytes <= pack->checked_bytes)
		return;
	bytes = bytes < 2 * pack->checked_bytes ? 2 * pack->checked_bytes : bytes;
	pack->checked = memory_grow(pack->checked, bytes, 1);
	memset(pack->checked + pack->checked_bytes, 0, bytes - pack->checked_bytes);
	pack->checked_bytes = bytes;
}
