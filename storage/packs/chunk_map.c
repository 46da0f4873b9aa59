#include "storage/packs/chunk_map.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/little_endian.h"
#include "base/memory.h"

enum { CHUNK_MAP_FIRST_SLOTS = 16 };

static void map_grow(struct chunk_map *map);
static uint64_t *map_slot(const struct chunk_map *map, uint32_t tag);
static uint32_t map_tag(const struct chunk_id *id);

void chunk_map_init(struct chunk_map *map)
{
	*map = (struct chunk_map){0};
}

void chunk_map_release(struct chunk_map *map)
{
	free(map->slots);
	chunk_map_init(map);
}

void chunk_map_add(struct chunk_map *map, const struct chunk_id *id, uint32_t number)
{
	if (map->count >= CHUNK_MAP_MAX)
		return;
	if (2 * map->count >= map->slot_count)
		map_grow(map);
	uint64_t *const slot = map_slot(map, map_tag(id));
	map->count += *slot == 0;
	*slot = (uint64_t)map_tag(id) << 32 | ((uint64_t)number + 1);
}

bool chunk_map_find(const struct chunk_map *map, const struct chunk_id *id, uint32_t *out_number)
{
	if (map->slot_count == 0)
		return false;
	const uint64_t slot = *map_slot(map, map_tag(id));
	if (slot == 0)
		return false;
	*out_number = (uint32_t)(slot & UINT32_MAX) - 1;
	return true;
}

static void map_grow(struct chunk_map *map)
{
	struct chunk_map grown = {
		.slot_count = map->slot_count == 0 ? CHUNK_MAP_FIRST_SLOTS : 2 * map->slot_count,
		.count = map->count};
	grown.slots = memory_new_array(grown.slot_count, sizeof(*grown.slots));
	for (size_t i = 0; i < map->slot_count; i++)
		if (map->slots[i] != 0)
			*map_slot(&grown, (uint32_t)(map->slots[i] >> 32)) = map->slots[i];
	free(map->slots);
	*map = grown;
}

/* The slot of the tag, or the free slot where it belongs. */
static uint64_t *map_slot(const struct chunk_map *map, uint32_t tag)
{
	ASSERT(map->slot_count > 0 && map->count < map->slot_count);
	size_t at = tag & (map->slot_count - 1);
	while (map->slots[at] != 0 && map->slots[at] >> 32 != tag)
		at = (at + 1) & (map->slot_count - 1);
	return &map->slots[at];
}

static uint32_t map_tag(const struct chunk_id *id)
{
	return (uint32_t)little_endian_get(id->bytes, 4);
}
