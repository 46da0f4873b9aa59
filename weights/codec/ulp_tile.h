/* A tile: the unit of elements in which the wide ways of ulp_scan work. It has a mask of each class
 * for each group of 64 elements, and the count of the class in the groups before. With these, a
 * rank is found from a position, and a position from a rank, without a walk over the elements. Each
 * way fills a tile with its own instructions. The code here is common to them and inline, so that
 * each way compiles it for its processor. */
#ifndef WEIGHTS_CODEC_ULP_TILE_H
#define WEIGHTS_CODEC_ULP_TILE_H

#include "weights/codec/ulp_scan.h"

/* Always inlined, because only then are they compiled for the instructions of their caller. */
#define ULP_TILE_INLINE static inline __attribute__((always_inline))

enum { ULP_TILE_GROUPS = 64, ULP_TILE_WORDS = ULP_TILE_GROUPS * ULP_SCAN_GROUP };

struct ulp_tile {
	/* bit i: word i of the group belongs to the class */
	uint64_t masks[ULP_CLASSES_MAX][ULP_TILE_GROUPS];
	/* words of the class in the groups before */
	uint16_t before[ULP_CLASSES_MAX][ULP_TILE_GROUPS];
	uint32_t totals[ULP_CLASSES_MAX]; /* words of the class in the tile */
	uint8_t classes[ULP_TILE_WORDS];
	/* ascending positions; with room for a whole vector behind the last */
	uint16_t changed[ULP_TILE_WORDS + ULP_SCAN_GROUP];
};

/* Fetches bytes of the next tile into the cache while the processor works on this one. The address
 * may lie behind the end of an array, because a prefetch reads nothing. */
ULP_TILE_INLINE void ulp_tile_prefetch(const uint8_t *words, unsigned width)
{
	__builtin_prefetch((const void *)((uintptr_t)words + (size_t)ULP_TILE_WORDS * width));
}

/* The count of words of the class before this position in the tile. */
ULP_TILE_INLINE uint32_t ulp_tile_rank(
	const struct ulp_tile *tile, unsigned position, unsigned class)
{
	const unsigned group = position / ULP_SCAN_GROUP;
	const uint64_t before = (UINT64_C(1) << position % ULP_SCAN_GROUP) - 1;
	return tile->before[class][group] +
		(uint32_t)__builtin_popcountll(tile->masks[class][group] & before);
}

/* Adds the tile's changes to a scan. Their positions are in tile->changed. */
ULP_TILE_INLINE void ulp_tile_collect(const struct ulp_tile *tile, size_t changed,
	const uint8_t *base, const uint8_t *next, unsigned width, struct ulp_scan *scan)
{
	uint32_t *const keys = scan->keys + scan->count;
	int16_t *const steps = scan->steps + scan->count;
	/* relative to the tile; below 0, modulo 2^32, for a last change before the tile */
	uint32_t from[ULP_CLASSES_MAX];
	for (unsigned class = 0; class < ULP_CLASSES_MAX; class ++)
		from[class] = scan->from[class] - scan->seen[class];
	for (size_t i = 0; i < changed; i++) {
		const unsigned position = tile->changed[i];
		const unsigned class = tile->classes[position];
		const uint32_t rank = ulp_tile_rank(tile, position, class);
		keys[i] = class << ULP_SCAN_GAP_BITS | (rank - from[class]);
		from[class] = rank + 1;
		steps[i] = ulp_word_step(ulp_word_load(base + position * width, width),
			ulp_word_load(next + position * width, width), width);
	}
	for (unsigned class = 0; class < ULP_CLASSES_MAX; class ++) {
		scan->from[class] = scan->seen[class] + from[class];
		scan->seen[class] += tile->totals[class];
	}
	scan->count += changed;
}

/* Functions that use the instructions of the processor. */
struct ulp_tile_ways {
	/* how many of ULP_TILE_GROUPS numbers are at most the limit */
	unsigned (*not_above)(const uint16_t *numbers, uint16_t limit);
	/* the place of the n-th set bit; n counts from 0 */
	unsigned (*select)(uint64_t mask, unsigned n);
};

/* Writes the words of the tile that the patch changes. `into` has the other words already. */
ULP_TILE_INLINE void ulp_tile_move(const struct ulp_tile *tile, struct ulp_tile_ways ways,
	unsigned width, const uint8_t *base, struct ulp_patch *patch, uint8_t *into)
{
	for (unsigned class = 0; class < ULP_CLASSES_MAX; class ++) {
		const uint32_t *ranks = patch->ranks[class];
		const int16_t *steps = patch->steps[class];
		const uint32_t start = patch->seen[class];
		const uint32_t end = start + tile->totals[class];
		for (; *ranks < end; ranks++, steps++) {
			const uint16_t rank = (uint16_t)(*ranks - start);
			const unsigned group = ways.not_above(tile->before[class], rank) - 1;
			const unsigned place = ways.select(
				tile->masks[class][group], rank - tile->before[class][group]);
			const size_t at = (size_t)(group * ULP_SCAN_GROUP + place) * width;
			ulp_word_store(into + at, width,
				ulp_word_moved(ulp_word_load(base + at, width), *steps, width));
		}
		patch->ranks[class] = ranks;
		patch->steps[class] = steps;
		patch->seen[class] = end;
	}
}

#endif
