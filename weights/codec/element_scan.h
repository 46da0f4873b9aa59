/* Where two runs of 2-byte elements differ. Wide compares, chosen once for the processor at hand;
 * equal stretches cost little more than reading them. Alignment is not needed. Any thread. */
#ifndef WEIGHTS_CODEC_ELEMENT_SCAN_H
#define WEIGHTS_CODEC_ELEMENT_SCAN_H

#include "base/span.h"

/* One block: what fits the second-level cache twice, and whose positions fit 16 bits. */
enum { ELEMENT_SCAN_BLOCK = 65536 };

/* Compares `count` (at most ELEMENT_SCAN_BLOCK) elements and writes the ascending positions of
 * those that differ to `positions`, which has room for `count` and is written nowhere else. Gives
 * how many. */
size_t element_scan(const uint8_t *base, const uint8_t *next, size_t count, uint16_t *positions);
/* The same by the portable way; the two always agree. */
size_t element_scan_portable(
	const uint8_t *base, const uint8_t *next, size_t count, uint16_t *positions);

/* How many elements of `width` bytes (1, 2, 4 or 8) differ between two runs of `bytes` bytes. */
uint64_t element_scan_count(const uint8_t *base, const uint8_t *next, size_t bytes, unsigned width);

#endif
