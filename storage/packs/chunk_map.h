/* Finds the number of a chunk by its id, in an open-addressing table of 32-bit tags with 8 bytes a
 * slot. It keeps no ids, so a result is a candidate that the caller must compare. When two ids have
 * equal tags the later one stays, which only costs a missed repetition. One thread at a time. */
#ifndef STORAGE_PACKS_CHUNK_MAP_H
#define STORAGE_PACKS_CHUNK_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chunker/chunk.h"

enum { CHUNK_MAP_MAX = 1 << 22 }; /* entries; more are dropped */

struct chunk_map {
	uint64_t *slots; /* tag in the high half, number + 1 in the low; 0: free */
	size_t slot_count;
	size_t count;
};

void chunk_map_init(struct chunk_map *map);
void chunk_map_release(struct chunk_map *map);
void chunk_map_add(struct chunk_map *map, const struct chunk_id *id, uint32_t number);
bool chunk_map_find(const struct chunk_map *map, const struct chunk_id *id, uint32_t *out_number);

#endif
