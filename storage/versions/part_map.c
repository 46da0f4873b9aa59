#include "storage/versions/part_map.h"

#include "base/little_endian.h"
#include "base/search.h"
#include "storage/db/row_sum.h"

static bool part_map_ends_before(const void *entry, const void *offset);
static bool part_map_is_below(const void *entry, const void *number);

void part_map_add(struct buffer *map, const struct part_map_entry *entry)
{
	uint8_t bytes[PART_MAP_ENTRY_BYTES];
	little_endian_put(bytes, entry->number, 4);
	little_endian_put(bytes + 4, entry->end, 8);
	little_endian_put(bytes + 12, entry->sum, 8);
	buffer_add(map, bytes, sizeof(bytes));
}

uint64_t part_map_contents(struct span map)
{
	return row_sum_bytes(0, map);
}

size_t part_map_count(struct span map)
{
	return map.len / PART_MAP_ENTRY_BYTES;
}

struct part_map_entry part_map_entry(struct span map, size_t index)
{
	ASSERT(index < part_map_count(map));
	const uint8_t *const at = map.data + index * PART_MAP_ENTRY_BYTES;
	return (struct part_map_entry){
		.number = (uint32_t)little_endian_get(at, 4),
		.start = index == 0 ? 0 : little_endian_get(at - PART_MAP_ENTRY_BYTES + 4, 8),
		.end = little_endian_get(at + 4, 8),
		.sum = little_endian_get(at + 12, 8),
	};
}

bool part_map_is_sound(struct span map)
{
	uint32_t last = 0;
	if (map.len == 0 || map.len % PART_MAP_ENTRY_BYTES != 0)
		return false;
	for (size_t i = 0; i < part_map_count(map); i++) {
		const struct part_map_entry entry = part_map_entry(map, i);
		if (entry.number <= last || entry.end < entry.start || entry.end > INT64_MAX)
			return false;
		last = entry.number;
	}
	return true;
}

size_t part_map_find(struct span map, uint64_t offset)
{
	return search_lower_bound(
		map.data, part_map_count(map), PART_MAP_ENTRY_BYTES, part_map_ends_before, &offset);
}

size_t part_map_find_number(struct span map, uint32_t number)
{
	return search_lower_bound(
		map.data, part_map_count(map), PART_MAP_ENTRY_BYTES, part_map_is_below, &number);
}

static bool part_map_ends_before(const void *entry, const void *offset)
{
	return little_endian_get((const uint8_t *)entry + 4, 8) <= *(const uint64_t *)offset;
}

static bool part_map_is_below(const void *entry, const void *number)
{
	return little_endian_get(entry, 4) < *(const uint32_t *)number;
}
