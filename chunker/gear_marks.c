/* Searches three lanes side by side. Each lane is a chain of dependent steps that leaves most of
 * the processor idle; three lanes keep it busiest. No work is wasted, because no cut ends the
 * search. */
#include "chunker/gear_marks.h"

#include <string.h>

#include "base/error.h"
#include "chunker/chunk.h"
#include "chunker/gear_table.h"

enum { WORD_BITS = 64, LANES = 3 };

static const uint64_t LOWEST_UNMARKED = UINT64_C(1) << 48; /* the top 16 bits are zero */

static uint64_t roll(const uint8_t *end)
{
	uint64_t hash = 0;
	for (const uint8_t *at = end - GEAR_MARKS_BEFORE; at < end; at++)
		hash = (hash << 1) + gear_table[*at];
	return hash;
}

/* One byte in 65,536 is marked. Inlined, this function costs the loop a fifth of its speed. */
static __attribute__((cold, noinline)) void mark(uint64_t *const marks, const size_t at)
{
	marks[at / WORD_BITS] |= UINT64_C(1) << at % WORD_BITS;
}

static void find_lanes(const uint8_t *bytes, size_t lane, uint64_t *marks)
{
	const uint8_t *const second = bytes + lane;
	const uint8_t *const third = second + lane;
	uint64_t a = roll(bytes);
	uint64_t b = roll(second);
	uint64_t c = roll(third);
#pragma GCC unroll 8
	for (size_t at = 0; at < lane; at++) {
		a = (a << 1) + gear_table[bytes[at]];
		b = (b << 1) + gear_table[second[at]];
		c = (c << 1) + gear_table[third[at]];
		if (a < LOWEST_UNMARKED)
			mark(marks, at);
		if (b < LOWEST_UNMARKED)
			mark(marks, lane + at);
		if (c < LOWEST_UNMARKED)
			mark(marks, 2 * lane + at);
	}
}

size_t gear_marks_words(size_t len)
{
	return (len + WORD_BITS - 1) / WORD_BITS;
}

void gear_marks_find(struct span bytes, uint64_t *marks)
{
	ASSERT(marks != NULL || bytes.len == 0);
	const size_t lane = bytes.len / LANES;
	memset(marks, 0, gear_marks_words(bytes.len) * sizeof(*marks));
	find_lanes(bytes.data, lane, marks);
	uint64_t hash = roll(bytes.data + LANES * lane);
	for (size_t at = LANES * lane; at < bytes.len; at++) {
		hash = (hash << 1) + gear_table[bytes.data[at]];
		if (hash < LOWEST_UNMARKED)
			mark(marks, at);
	}
}

/* The first marked place in [from, to), or `to`. */
static size_t next_mark(const uint64_t *marks, size_t from, size_t to)
{
	for (size_t at = from; at < to; at = at / WORD_BITS * WORD_BITS + WORD_BITS) {
		const uint64_t word = marks[at / WORD_BITS] >> at % WORD_BITS;
		if (word == 0)
			continue;
		const size_t found = at + (size_t)__builtin_ctzll(word);
		return found < to ? found : to;
	}
	return to;
}

size_t gear_marks_end(const uint64_t *marks, size_t len, ptrdiff_t before)
{
	const ptrdiff_t first = CHUNK_MIN_BYTES - 1 - before;
	const ptrdiff_t last = CHUNK_MAX_BYTES - 1 - before; /* ends here even without a mark */
	ASSERT(last >= 0);
	const size_t from = first < 0 ? 0 : (size_t)first;
	const size_t to = (size_t)last < len ? (size_t)last : len;
	const size_t found = next_mark(marks, from, to);
	if (found < to)
		return found + 1;
	return (size_t)last < len ? (size_t)last + 1 : 0;
}
