#include "weights/gap_code.h"

#include "base/error.h"

/* Close to the best for gaps of a geometric distribution: the power of two at or below 0.69 of the mean. */
static unsigned guess(const uint32_t *const gaps, const size_t count)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += gaps[i];
	const uint64_t scaled = sum * 11 / 16 / count;
	return scaled < 2 ? 0 : 63 - (unsigned)__builtin_clzll(scaled);
}

static uint64_t total(const uint32_t *const gaps, const size_t count, const unsigned parameter)
{
	uint64_t bits = 0;
	for (size_t i = 0; i < count; i++)
		bits += gap_code_size(gaps[i], parameter);
	return bits;
}

unsigned gap_code_choose(const uint32_t *const gaps, const size_t count, uint64_t *const out_bits)
{
	*out_bits = 0;
	if (count == 0)
		return 0;
	const unsigned middle = guess(gaps, count);
	const unsigned last = middle < GAP_CODE_PARAMETER_MAX ? middle + 1 : middle;
	unsigned best = middle;
	*out_bits = total(gaps, count, middle);
	for (unsigned parameter = middle == 0 ? 0 : middle - 1; parameter <= last; parameter++) {
		const uint64_t bits = parameter == middle ? *out_bits : total(gaps, count, parameter);
		if (bits < *out_bits) {
			*out_bits = bits;
			best = parameter;
		}
	}
	return best;
}

void gap_code_write(struct bit_writer *const writer, const uint32_t *const gaps, const size_t count, const unsigned parameter)
{
	struct bit_writer local = *writer;
	for (size_t i = 0; i < count; i++)
		gap_code_put(&local, gaps[i], parameter);
	*writer = local;
}

bool gap_code_read(struct bit_reader *const reader, const unsigned parameter, const size_t count, const uint32_t limit,
	uint32_t *const positions)
{
	ASSERT(parameter <= GAP_CODE_PARAMETER_MAX && limit <= GAP_CODE_MAX);
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
