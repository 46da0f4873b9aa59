/* Most steps are one ulp long, so a sign is all that most steps need. The few longer steps are
 * found by Rice codes of the gaps between them. Writer and reader adapt the Rice parameter in the
 * same way from the gaps before, so it is not stored. */
#include "weights/codec/ulp_steps.h"

#include "weights/codec/gap_code.h"

enum {
	WINDOW = 16,
	LENGTH_BITS_MAX = 15, /* of |step| - 1, which is at most 32767 */
	SIGNS_AT_ONCE = 32
};

/* The mean of the last gaps, which gives the Rice parameter of the next one. Long steps are
 * frequent among small weights and rare among large ones, and the steps come in that order. */
struct gap_mean {
	uint64_t sum;
	uint64_t count;
};

static struct gap_mean gap_mean_start(void)
{
	return (struct gap_mean){.sum = 4, .count = 1};
}

static inline unsigned gap_mean_parameter(const struct gap_mean *mean)
{
	unsigned parameter = 0;
	while (mean->count << parameter < mean->sum)
		parameter++;
	return parameter;
}

static inline void gap_mean_add(struct gap_mean *mean, uint32_t gap)
{
	mean->sum += gap;
	if (++mean->count == WINDOW) {
		mean->sum /= 2;
		mean->count /= 2;
	}
}

static inline uint32_t length_of(int16_t step)
{
	return (uint32_t)(step < 0 ? -step : step);
}

/* A length is an exp-Golomb code of order 0 for length - 2. Let n be the count of bits of
 * length - 1 behind its first: the code is n zeros, a one, those n bits. */
static inline unsigned length_bits(uint32_t length)
{
	return 31 - (unsigned)__builtin_clz(length - 1);
}

static inline void put_length(struct bit_writer *writer, uint32_t length)
{
	const unsigned bits = length_bits(length);
	const uint64_t low = (length - 1) & ((1u << bits) - 1);
	bit_writer_put(writer, (low << 1 | 1) << bits, 2 * bits + 1);
}

static inline bool take_length(struct bit_reader *reader, uint32_t *out_length)
{
	const uint64_t code = bit_reader_peek(reader);
	const unsigned bits = (unsigned)__builtin_ctzll(code | UINT64_C(1) << LENGTH_BITS_MAX);
	if (bits >= LENGTH_BITS_MAX)
		return false;
	*out_length = (1u << bits | (uint32_t)(code >> (bits + 1) & ((1u << bits) - 1))) + 1;
	bit_reader_skip(reader, 2 * bits + 1);
	return true;
}

/* Finds the places of the steps that are longer than one ulp and returns their count. */
static size_t find_long(const int16_t *steps, size_t count, uint32_t *places)
{
	size_t found = 0;
	for (size_t i = 0; i < count; i++) {
		places[found] = (uint32_t)i;
		found += (uint16_t)(steps[i] + 1) > 2; /* neither 1 nor -1 */
	}
	return found;
}

static void write_long(
	struct bit_writer *writer, const int16_t *steps, size_t count, uint32_t *places)
{
	struct gap_mean mean = gap_mean_start();
	const size_t found = find_long(steps, count, places);
	uint32_t next = 0;
	for (size_t i = 0; i < found; i++) {
		const uint32_t gap = places[i] - next;
		gap_code_put(writer, gap, gap_mean_parameter(&mean));
		put_length(writer, length_of(steps[places[i]]));
		gap_mean_add(&mean, gap);
		next = places[i] + 1;
	}
	gap_code_put(writer, (uint32_t)count - next, gap_mean_parameter(&mean));
}

void ulp_steps_write(
	struct bit_writer *writer, const int16_t *steps, size_t count, uint32_t *places)
{
	struct bit_writer local = *writer;
	for (size_t i = 0; i < count;) {
		const unsigned taken =
			count - i < SIGNS_AT_ONCE ? (unsigned)(count - i) : SIGNS_AT_ONCE;
		uint64_t signs = 0;
		for (unsigned bit = 0; bit < taken; bit++)
			signs |= (uint64_t)((uint16_t)steps[i++] >> 15) << bit;
		bit_writer_put(&local, signs, taken);
	}
	write_long(&local, steps, count, places);
	*writer = local;
}

static void read_signs(struct bit_reader *reader, size_t count, int16_t *steps)
{
	for (size_t i = 0; i < count;) {
		const unsigned taken =
			count - i < SIGNS_AT_ONCE ? (unsigned)(count - i) : SIGNS_AT_ONCE;
		const uint64_t signs = bit_reader_take(reader, taken);
		for (unsigned bit = 0; bit < taken; bit++)
			steps[i++] = (int16_t)(1 - 2 * (int)(signs >> bit & 1));
	}
}

bool ulp_steps_read(struct bit_reader *reader, size_t count, int16_t *steps)
{
	struct bit_reader local = *reader;
	struct gap_mean mean = gap_mean_start();
	size_t at = 0;
	read_signs(&local, count, steps);
	for (;; at++) {
		uint32_t length;
		const uint32_t gap = gap_code_take(&local, gap_mean_parameter(&mean));
		at += gap;
		if (at >= count) {
			*reader = local;
			return at == count;
		}
		gap_mean_add(&mean, gap);
		if (!take_length(&local, &length))
			return false;
		steps[at] = (int16_t)(steps[at] < 0 ? -(int)length : (int)length);
	}
}
