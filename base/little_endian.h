/* Little-endian integers of files, at any alignment. `bytes` is at most 8. */
#ifndef BASE_LITTLE_ENDIAN_H
#define BASE_LITTLE_ENDIAN_H

#include <stdint.h>

static inline void little_endian_put(uint8_t *into, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		into[i] = (uint8_t)(value >> (8 * i));
}

static inline uint64_t little_endian_get(const uint8_t *from, unsigned bytes)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)from[i] << (8 * i);
	return value;
}

#endif
