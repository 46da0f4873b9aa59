#include "weights/ulp_steps.h"

#include "weights/gap_code.h"

enum { WINDOW = 16, LENGTH_BITS_MAX = 15 /* of |step| - 1, which is at most 32767 */, SIGNS_AT_ONCE = 32 };

/* The mean of the gaps of late, which gives the next one's Rice parameter: long steps are frequent among small weights and rare among
 * large ones, and the steps come in that order. */
struct gap_mean {
	uint64_t sum;
	uint32_t count;
};

static struct gap_mean gap_mean_start(void)
{
	return (struct gap_mean){.sum = 4, .count = 1};
}

static inline unsigned gap_mean_parameter(const struct gap_mean *const mean)
{
	unsigned parameter = 0;
	while ((uint64_t)mean->count << parameter < mean->sum)
		parameter++;
	return parameter;
}

static inline void gap_mean_add(struct gap_mean *const mean, const uint32_t gap)
{
	mean->sum += gap;
	if (++mean->count == WINDOW) {
		mean->sum /= 2;
		mean->count /= 2;
	}
}

static inline uint32_t length_of(const int16_t step)
{
	return (uint32_t)(step < 0 ? -step : step);
}

/* An exp-Golomb code of order 0 for length - 2: as many zeros as length - 1 has bits behind its first, a one, those bits. */
static inline unsigned length_bits(const uint32_t length)
{
	return 31 - (unsigned)__builtin_clz(length - 1);
}

static inline void put_length(struct bit_writer *const writer, const uint32_t length)
{
	const unsigned bits = length_bits(length);
	const uint64_t low = (length - 1) & ((1u << bits) - 1);
	bit_writer_put(writer, (low << 1 | 1) << bits, 2 * bits + 1);
}

static inline bool take_length(struct bit_reader *const reader, uint32_t *const out_length)
{
	const uint64_t code = bit_reader_peek(reader);
	const unsigned bits = (unsigned)__builtin_ctzll(code | UINT64_C(1) << LENGTH_BITS_MAX);
	if (bits >= LENGTH_BITS_MAX)
		return false;
	*out_length = (1u << bits | (uint32_t)(code >> (bits + 1) & ((1u << bits) - 1))) + 1;
	bit_reader_skip(reader, 2 * bits + 1);
	return true;
}

/* The steps longer than one ulp; the last gap reaches to the end. */
static inline uint64_t long_steps(struct bit_writer *const writer, const int16_t *const steps, const size_t count)
{
	struct gap_mean mean = gap_mean_start();
	uint64_t bits = 0;
	size_t next = 0;
	for (size_t i = 0; i <= count; i++) {
		const uint32_t length = i < count ? length_of(steps[i]) : 0;
		if (length == 1)
			continue;
		const uint32_t gap = (uint32_t)(i - next);
		const unsigned parameter = gap_mean_parameter(&mean);
		bits += gap_code_size(gap, parameter) + (i < count ? 2 * length_bits(length) + 1 : 0);
		if (writer != NULL)
			gap_code_put(writer, gap, parameter);
		if (writer != NULL && i < count)
			put_length(writer, length);
		gap_mean_add(&mean, gap);
		next = i + 1;
	}
	return bits;
}

uint64_t ulp_steps_bits(const int16_t *const steps, const size_t count)
{
	return count + long_steps(NULL, steps, count);
}

void ulp_steps_write(struct bit_writer *const writer, const int16_t *const steps, const size_t count)
{
	for (size_t i = 0; i < count;) {
		uint64_t signs = 0;
		unsigned taken = 0;
		for (; taken < SIGNS_AT_ONCE && i < count; taken++, i++)
			signs |= (uint64_t)(steps[i] < 0) << taken;
		bit_writer_put(writer, signs, taken);
	}
	long_steps(writer, steps, count);
}

static void read_signs(struct bit_reader *const reader, const size_t count, int16_t *const steps)
{
	for (size_t i = 0; i < count;) {
		const unsigned taken = count - i < SIGNS_AT_ONCE ? (unsigned)(count - i) : SIGNS_AT_ONCE;
		const uint64_t signs = bit_reader_take(reader, taken);
		for (unsigned bit = 0; bit < taken; bit++)
			steps[i++] = (int16_t)(1 - 2 * (int)(signs >> bit & 1));
	}
}

bool ulp_steps_read(struct bit_reader *const reader, const size_t count, int16_t *const steps)
{
	struct gap_mean mean = gap_mean_start();
	size_t at = 0;
	read_signs(reader, count, steps);
	for (;; at++) {
		uint32_t length;
		const uint32_t gap = gap_code_take(reader, gap_mean_parameter(&mean));
		at += gap;
		if (at >= count)
			return at == count;
		gap_mean_add(&mean, gap);
		if (!take_length(reader, &length))
			return false;
		steps[at] = (int16_t)(steps[at] < 0 ? -(int)length : (int)length);
	}
}
