#include "weights/codec/gap_code.h"

#include "base/error.h"

/* The best parameter for gaps of a geometric distribution is 1 + floor(log2(ln(phi - 1) / ln(mean /
 * (mean + 1)))). The quotient of the logarithms is close to 0.48125 * (mean + 1/2), or 77/160. */
unsigned gap_code_parameter(uint64_t sum, size_t count)
{
	const uint64_t scaled = count == 0 ? 0 : (2 * sum + count) * 77 / (320 * (uint64_t)count);
	const unsigned bits = scaled == 0 ? 0 : 64 - (unsigned)__builtin_clzll(scaled);
	return bits < GAP_CODE_PARAMETER_MAX ? bits : GAP_CODE_PARAMETER_MAX;
}

void gap_code_write(
	struct bit_writer *writer, const uint32_t *gaps, size_t count, unsigned parameter)
{
	ASSERT(parameter <= GAP_CODE_PARAMETER_MAX);
	struct bit_writer local = *writer; /* stays in registers */
	for (size_t i = 0; i < count; i++)
		gap_code_put(&local, gaps[i], parameter);
	*writer = local;
}

bool gap_code_read(struct bit_reader *reader, unsigned parameter, size_t count, uint32_t limit,
	uint32_t *positions)
{
	ASSERT(parameter <= GAP_CODE_PARAMETER_MAX);
	ASSERT(limit <= GAP_CODE_MAX);
	struct bit_reader local = *reader;
	uint32_t next = 0;
	for (size_t i = 0; i < count; i++) {
		const uint32_t position = next + gap_code_take(&local, parameter);
		if (position >= limit)
			return false;
		positions[i] = position;
		next = position + 1;
	}
	*reader = local;
	return true;
}
