/* Where each part of a completed multipart object begins: a blob of the part set. A ranged read
 * finds its parts in it by binary search and reads only their rows. For each part in order: u32
 * number, u64 end (bytes of all parts up to and with this one), u64 sum of its row; little-endian.
 * docs/FORMAT.md, "Multipart uploads". Pure functions. Internal to storage. */
#ifndef STORAGE_VERSIONS_PART_MAP_H
#define STORAGE_VERSIONS_PART_MAP_H

#include "base/buffer.h"

enum { PART_MAP_ENTRY_BYTES = 20 };

struct part_map_entry {
	uint32_t number;
	uint64_t start;
	uint64_t end;
	uint64_t sum;
};

/* Ignores `start`, which is the end of the entry before. */
void part_map_add(struct buffer *map, const struct part_map_entry *entry);
/* The sum of the map, which the version row has as its contents. */
uint64_t part_map_contents(struct span map);
/* Whether the map has whole entries, at least one, numbers that rise and ends that do not fall. */
bool part_map_is_sound(struct span map);
size_t part_map_count(struct span map);
struct part_map_entry part_map_entry(struct span map, size_t index);
/* The index of the first part that ends behind `offset`; the count when there is none. */
size_t part_map_find(struct span map, uint64_t offset);
/* The index of the first part whose number is at least `number`; the count when there is none. */
size_t part_map_find_number(struct span map, uint32_t number);

#endif
