/* Finds where two arrays of 2-byte elements differ. It uses the widest compares of the processor;
 * equal stretches cost little more than reading them. Alignment is not needed. Any thread. */
#ifndef WEIGHTS_CODEC_ELEMENT_SCAN_H
#define WEIGHTS_CODEC_ELEMENT_SCAN_H

#include "base/span.h"

/* Elements of a block. Two blocks fit the second-level cache, and positions fit 16 bits. */
enum { ELEMENT_SCAN_BLOCK = 65536 };

/* Compares `count` elements, at most ELEMENT_SCAN_BLOCK. Writes the ascending positions of those
 * that differ to `positions`, which has room for `count`, and returns how many they are. */
size_t element_scan(const uint8_t *base, const uint8_t *next, size_t count, uint16_t *positions);
/* The portable version, for tests; both always agree. */
size_t element_scan_portable(
	const uint8_t *base, const uint8_t *next, size_t count, uint16_t *positions);

/* Counts the elements of `width` bytes (1, 2, 4 or 8) that differ between two arrays of `bytes`
 * bytes. */
uint64_t element_scan_count(const uint8_t *base, const uint8_t *next, size_t bytes, unsigned width);

#endif
