/* Finds the number of a chunk by its id: an open-addressing table of 32-bit tags, 8 bytes a slot.
 * It keeps no ids, so what it finds is a candidate that the caller compares; of two ids with equal
 * tags the later stays, which costs a missed repeat and no more. One thread at a time. */
#ifndef STORAGE_PACKS_CHUNK_MAP_H
#define STORAGE_PACKS_CHUNK_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chunker/chunk.h"

enum { CHUNK_MAP_MAX = 1 << 22 }; /* entries; more are dropped */

struct chunk_map {
	uint64_t *slots; /* tag, then number + 1; 0: free */
	size_t slot_count;
	size_t count;
};

void chunk_map_init(struct chunk_map *map);
void chunk_map_release(struct chunk_map *map);
void chunk_map_add(struct chunk_map *map, const struct chunk_id *id, uint32_t number);
bool chunk_map_find(const struct chunk_map *map, const struct chunk_id *id, uint32_t *out_number);

#endif
