/* Small floating-point words as places on a line. Neighbours are one ulp apart, and every bit
 * pattern has its own place: -0 is next to +0, infinities and NaN payloads follow the largest
 * numbers. So words turn into places and back without loss. docs/FORMAT.md, "ulp-class blocks". */
#ifndef WEIGHTS_CODEC_ULP_WORD_H
#define WEIGHTS_CODEC_ULP_WORD_H

#include <endian.h>
#include <string.h>

#include "weights/codec/dtype.h"

enum { ULP_CLASSES_MAX = 12 };

/* The layout of a dtype's words. */
struct ulp_format {
	uint8_t width; /* bytes: 1 or 2; 0 when the dtype's words are not small floats */
	uint8_t shift; /* mantissa bits */
	uint8_t mask;  /* of the exponent, after the shift */
};

static inline struct ulp_format ulp_format_of(enum dtype dtype)
{
	static const struct ulp_format formats[DTYPE_COUNT] = {
		[DTYPE_BF16] = {2, 7, 255},
		[DTYPE_F16] = {2, 10, 31},
		[DTYPE_F8_E4M3] = {1, 3, 15},
		[DTYPE_F8_E4M3FNUZ] = {1, 3, 15},
		[DTYPE_F8_E5M2] = {1, 2, 31},
		[DTYPE_F8_E5M2FNUZ] = {1, 2, 31},
	};
	return formats[dtype];
}

static inline uint16_t ulp_word_load(const uint8_t *from, unsigned width)
{
	uint16_t word;
	if (width == 1)
		return *from;
	memcpy(&word, from, sizeof(word));
	return le16toh(word);
}

static inline void ulp_word_store(uint8_t *into, unsigned width, uint16_t word)
{
	const uint16_t bytes = htole16(word);
	if (width == 1)
		*into = (uint8_t)word;
	else
		memcpy(into, &bytes, sizeof(bytes));
}

/* The place of a non-negative word is its bits. That of a negative word is -1 - its bits without
 * the sign, in two's complement of the word's width. The function is its own inverse. */
static inline uint16_t ulp_word_place(uint16_t word, unsigned width)
{
	return width == 1 ? (uint16_t)(word ^ ((word >> 7) * 0x7f))
			  : (uint16_t)(word ^ ((word >> 15) * 0x7fff));
}

/* The signed count of ulps from one word to another, modulo the word's range. */
static inline int16_t ulp_word_step(uint16_t from, uint16_t to, unsigned width)
{
	const int difference = ulp_word_place(to, width) - ulp_word_place(from, width);
	return width == 1 ? (int8_t)difference : (int16_t)difference;
}

static inline uint16_t ulp_word_moved(uint16_t word, int16_t step, unsigned width)
{
	const uint16_t place = (uint16_t)(ulp_word_place(word, width) + step);
	return ulp_word_place(width == 1 ? (uint8_t)place : place, width);
}

/* The class of a word: 0 for the largest exponents, classes - 1 for the smallest. */
static inline unsigned ulp_word_class(
	uint16_t word, struct ulp_format format, unsigned top, unsigned classes)
{
	const unsigned exponent = (unsigned)(word >> format.shift) & format.mask;
	const unsigned below = exponent < top ? top - exponent : 0;
	return below < classes ? below : classes - 1;
}

#endif
