/* Gaps as Rice codes: the quotient in unary (zeros, then a one), then the low `parameter` bits. For
 * a quotient of 24 or more, the code is 24 zeros and the gap in 21 bits, so no code has more than
 * 45 bits. docs/FORMAT.md, "Codes". Any thread. */
#ifndef WEIGHTS_CODEC_GAP_CODE_H
#define WEIGHTS_CODEC_GAP_CODE_H

#include "weights/codec/bit_stream.h"

enum {
	GAP_CODE_BITS = 21,
	GAP_CODE_MAX = 1 << 20, /* the largest gap */
	GAP_CODE_PARAMETER_MAX = 20,
	GAP_CODE_PARAMETER_BITS = 5,
	GAP_CODE_ESCAPE = 24,
	GAP_CODE_BYTES_MOST = 6
};

static inline unsigned gap_code_size(uint32_t gap, unsigned parameter)
{
	const uint32_t quotient = gap >> parameter;
	return quotient < GAP_CODE_ESCAPE ? quotient + 1 + parameter
					  : GAP_CODE_ESCAPE + GAP_CODE_BITS;
}

static inline void gap_code_put(struct bit_writer *writer, uint32_t gap, unsigned parameter)
{
	const uint32_t quotient = gap >> parameter;
	if (quotient < GAP_CODE_ESCAPE) {
		const uint64_t low = gap & ((1u << parameter) - 1);
		bit_writer_put(writer, (low << 1 | 1) << quotient, quotient + 1 + parameter);
	} else {
		bit_writer_put(
			writer, (uint64_t)gap << GAP_CODE_ESCAPE, GAP_CODE_ESCAPE + GAP_CODE_BITS);
	}
}

/* For any bits, the result is below 24 << parameter or below 1 << GAP_CODE_BITS. */
static inline uint32_t gap_code_take(struct bit_reader *reader, unsigned parameter)
{
	const uint64_t bits = bit_reader_peek(reader);
	const unsigned quotient = (unsigned)__builtin_ctzll(bits | UINT64_C(1) << GAP_CODE_ESCAPE);
	if (quotient < GAP_CODE_ESCAPE) {
		bit_reader_skip(reader, quotient + 1 + parameter);
		return quotient << parameter |
			(uint32_t)(bits >> (quotient + 1) & ((1u << parameter) - 1));
	}
	bit_reader_skip(reader, GAP_CODE_ESCAPE + GAP_CODE_BITS);
	return (uint32_t)(bits >> GAP_CODE_ESCAPE & ((1u << GAP_CODE_BITS) - 1));
}

/* The best parameter for `count` gaps with this sum. */
unsigned gap_code_parameter(uint64_t sum, size_t count);
void gap_code_write(
	struct bit_writer *writer, const uint32_t *gaps, size_t count, unsigned parameter);
/* Reads `count` gaps as ascending positions: each is the one before, plus one, plus the gap; the
 * first is its gap. False when a position is not below `limit`, which is at most GAP_CODE_MAX. The
 * caller checks afterwards whether the reader ran out of bits. */
bool gap_code_read(struct bit_reader *reader, unsigned parameter, size_t count, uint32_t limit,
	uint32_t *positions);

#endif
