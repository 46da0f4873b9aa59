/* The 64 steps of MD5 (RFC 1321), for words and for vectors of words. Only base/digest/md5_lanes.c
 * uses them. */
#ifndef BASE_DIGEST_MD5_STEPS_H
#define BASE_DIGEST_MD5_STEPS_H

#include "base/digest/md5_lanes.h"

enum { MD5_STEPS = 64, MD5_WORDS = MD5_BLOCK_BYTES / 4 };

static const uint32_t md5_addends[MD5_STEPS] = { /* 2^32 times |sin(step + 1)| */
	0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
	0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
	0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
	0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
	0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
	0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
	0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
	0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};
static const uint8_t md5_rotations[4][4] = { {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21} };

/* All steps on a, b, c, d, each a word or a vector of words. `word(i)` gives the i-th word of the
 * block, `addend(step)` that of md5_addends. Unrolled, so that the compiler knows everything that
 * depends on the step alone. */
#define MD5_ROUNDS(type, word, addend) \
	_Pragma("GCC unroll 64") for (int step = 0; step < MD5_STEPS; step++) { \
		const int bits = md5_rotations[step / 16][step % 4]; \
		type sum; \
		if (step < 16) \
			sum = (a + word(step) + addend(step)) + (d ^ (b & (c ^ d))); \
		else if (step < 32) /* the two halves have no bit in common, and the one without b can be added early */ \
			sum = (a + word((5 * step + 1) % MD5_WORDS) + addend(step) + (c & ~d)) + (b & d); \
		else if (step < 48) \
			sum = (a + word((3 * step + 5) % MD5_WORDS) + addend(step)) + (b ^ (c ^ d)); \
		else \
			sum = (a + word((7 * step) % MD5_WORDS) + addend(step)) + (c ^ (b | ~d)); \
		a = d; \
		d = c; \
		c = b; \
		b += sum << bits | sum >> (32 - bits); \
	}

#endif
