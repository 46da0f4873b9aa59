/* Compares a stride of elements at once and looks closer only when the stride has a difference,
 * because most elements of weights stay equal. The AVX2 path takes the positions from a mask of
 * the differences; the portable path compares the elements of the stride one by one. */
#include "weights/codec/element_scan.h"

#include <string.h>

#include "base/error.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static uint64_t load64(const uint8_t *from)
{
	uint64_t word;
	memcpy(&word, from, sizeof(word));
	return word;
}

/* Compares element by element: tails, and strides that are known to have a difference. */
static size_t scan_few(
	const uint8_t *base, const uint8_t *next, size_t from, size_t to, uint16_t *positions)
{
	size_t found = 0;
	for (size_t i = from; i < to; i++)
		if (memcmp(base + 2 * i, next + 2 * i, 2) != 0)
			positions[found++] = (uint16_t)i;
	return found;
}

size_t element_scan_portable(
	const uint8_t *base, const uint8_t *next, size_t count, uint16_t *positions)
{
	ASSERT(count <= ELEMENT_SCAN_BLOCK);
	enum { STRIDE = 16 };
	size_t found = 0;
	size_t i = 0;
	for (; i + STRIDE <= count; i += STRIDE) {
		const uint8_t *const a = base + 2 * i;
		const uint8_t *const b = next + 2 * i;
		const uint64_t low = (load64(a) ^ load64(b)) | (load64(a + 8) ^ load64(b + 8));
		const uint64_t high =
			(load64(a + 16) ^ load64(b + 16)) | (load64(a + 24) ^ load64(b + 24));
		if ((low | high) != 0)
			found += scan_few(base, next, i, i + STRIDE, positions + found);
	}
	return found + scan_few(base, next, i, count, positions + found);
}

/* A width that is known when this is compiled makes each compare one instruction. */
__attribute__((always_inline)) static inline uint64_t count_width(
	const uint8_t *base, const uint8_t *next, size_t bytes, size_t width)
{
	uint64_t found = 0;
	for (size_t i = 0; i < bytes; i += width)
		found += memcmp(base + i, next + i, width) != 0;
	return found;
}

#if defined(__x86_64__)

/* Returns one bit for each of 32 elements, set when they differ. Both halves are compared as 16-bit
 * lanes, narrowed to bytes and gathered. The narrowing works within 128-bit lanes, so the quarters
 * are put back in order afterwards. */
__attribute__((target("avx2"))) static inline uint32_t differing32(
	const uint8_t *const a, const uint8_t *const b)
{
	const __m256i low = _mm256_cmpeq_epi16(
		_mm256_loadu_si256((const __m256i *)a), _mm256_loadu_si256((const __m256i *)b));
	const __m256i high = _mm256_cmpeq_epi16(_mm256_loadu_si256((const __m256i *)(a + 32)),
		_mm256_loadu_si256((const __m256i *)(b + 32)));
	const __m256i narrow = _mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xd8);
	return ~(uint32_t)_mm256_movemask_epi8(narrow);
}

__attribute__((target("avx2"))) static size_t scan_avx2(const uint8_t *const base,
	const uint8_t *const next, const size_t count, uint16_t *const positions)
{
	enum { STRIDE = 32 };
	size_t found = 0;
	size_t i = 0;
	for (; i + STRIDE <= count; i += STRIDE) {
		uint32_t differing = differing32(base + 2 * i, next + 2 * i);
		for (; differing != 0; differing &= differing - 1)
			positions[found++] = (uint16_t)(i + (size_t)__builtin_ctz(differing));
	}
	return found + scan_few(base, next, i, count, positions + found);
}

size_t element_scan(const uint8_t *base, const uint8_t *next, size_t count, uint16_t *positions)
{
	ASSERT(count <= ELEMENT_SCAN_BLOCK);
	return __builtin_cpu_supports("avx2") ? scan_avx2(base, next, count, positions)
					      : element_scan_portable(base, next, count, positions);
}

__attribute__((target("avx2,popcnt"))) static uint64_t count_2_avx2(
	const uint8_t *base, const uint8_t *next, size_t bytes)
{
	enum { STRIDE_BYTES = 64 };
	uint64_t found = 0;
	size_t i = 0;
	for (; i + STRIDE_BYTES <= bytes; i += STRIDE_BYTES)
		found += (unsigned)__builtin_popcount(differing32(base + i, next + i));
	return found + count_width(base + i, next + i, bytes - i, 2);
}

static uint64_t count_2(const uint8_t *base, const uint8_t *next, size_t bytes)
{
	return __builtin_cpu_supports("avx2") ? count_2_avx2(base, next, bytes)
					      : count_width(base, next, bytes, 2);
}

#else

static uint64_t count_2(const uint8_t *base, const uint8_t *next, size_t bytes)
{
	return count_width(base, next, bytes, 2);
}

size_t element_scan(const uint8_t *base, const uint8_t *next, size_t count, uint16_t *positions)
{
	return element_scan_portable(base, next, count, positions);
}

#endif

static uint64_t count_stride(const uint8_t *base, const uint8_t *next, size_t bytes, unsigned width)
{
	switch (width) {
	case 1:
		return count_width(base, next, bytes, 1);
	case 2:
		return count_2(base, next, bytes);
	case 4:
		return count_width(base, next, bytes, 4);
	default:
		return count_width(base, next, bytes, 8);
	}
}

uint64_t element_scan_count(const uint8_t *base, const uint8_t *next, size_t bytes, unsigned width)
{
	enum { STRIDE = 4096 };
	ASSERT(width == 1 || width == 2 || width == 4 || width == 8);
	ASSERT(bytes % width == 0);
	uint64_t found = 0;
	for (size_t from = 0; from < bytes; from += STRIDE) {
		const size_t to = bytes - from < STRIDE ? bytes : from + STRIDE;
		if (memcmp(base + from, next + from, to - from) == 0)
			continue;
		found += count_stride(base + from, next + from, to - from, width);
	}
	return found;
}
