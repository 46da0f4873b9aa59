/* The passes of ulp_scan for processors with AVX-512 as Ice Lake has it. The outline is that of
 * ulp_avx2.c, but a mask of 64 words takes one compare, and running sums count all 64 groups of a
 * class at once. */
#include "weights/codec/ulp_scan.h"

#if defined __x86_64__ && defined __GNUC__
#include <immintrin.h>

#include "weights/codec/ulp_tile.h"

/* Functions that take a width are inlined where the width is a constant. */
#define WIDE                   \
	__attribute__((target( \
		"avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx512vpopcntdq,bmi,bmi2,popcnt")))
#define WIDE_INLINE WIDE static inline __attribute__((always_inline))

/* The view of a pass, in registers. */
struct classifier {
	__m128i shift;
	__m512i mask;
	__m512i top;
	__m512i last;
	__m512i low_bytes; /* picks the low byte of each of two vectors' words */
};

WIDE static struct classifier classifier_of(const struct ulp_view *view)
{
	uint8_t picks[64];
	for (unsigned i = 0; i < sizeof(picks); i++)
		picks[i] = (uint8_t)(2 * i);
	return (struct classifier){.shift = _mm_cvtsi32_si128(view->format.shift),
		.mask = _mm512_set1_epi8((char)view->format.mask),
		.top = _mm512_set1_epi8((char)view->top),
		.last = _mm512_set1_epi8((char)(view->classes - 1)),
		.low_bytes = _mm512_loadu_si512(picks)};
}

/* The classes of 64 words. */
WIDE_INLINE __m512i classify(
	const struct classifier *classifier, const uint8_t *words, unsigned width)
{
	__m512i exponents = _mm512_srl_epi16(_mm512_loadu_si512(words), classifier->shift);
	if (width == 2) {
		const __m512i upper =
			_mm512_srl_epi16(_mm512_loadu_si512(words + 64), classifier->shift);
		exponents = _mm512_permutex2var_epi8(exponents, classifier->low_bytes, upper);
	}
	exponents = _mm512_and_si512(exponents, classifier->mask);
	return _mm512_min_epu8(_mm512_subs_epu8(classifier->top, exponents), classifier->last);
}

WIDE_INLINE void fill_masks(const struct classifier *classifier, const uint8_t *words,
	unsigned width, struct ulp_tile *tile)
{
	for (unsigned group = 0; group < ULP_TILE_GROUPS; group++) {
		const uint8_t *const at = words + group * ULP_SCAN_GROUP * width;
		const __m512i classes = classify(classifier, at, width);
		ulp_tile_prefetch(at, width);
		ulp_tile_prefetch(at + 64, width);
		_mm512_storeu_si512(tile->classes + group * ULP_SCAN_GROUP, classes);
#pragma GCC unroll 12
		for (unsigned class = 0; class < ULP_CLASSES_MAX; class ++)
			tile->masks[class][group] = _cvtmask64_u64(
				_mm512_cmpeq_epi8_mask(classes, _mm512_set1_epi8((char)class)));
	}
}

/* The running sums of 32 numbers: first within lanes of eight, over distances of 1, 2 and 4, then
 * from lane to lane. */
WIDE_INLINE __m512i running_sums(__m512i numbers, __m512i lane_ends)
{
	__m512i sums = _mm512_add_epi16(numbers, _mm512_bslli_epi128(numbers, 2));
	sums = _mm512_add_epi16(sums, _mm512_bslli_epi128(sums, 4));
	sums = _mm512_add_epi16(sums, _mm512_bslli_epi128(sums, 8));
	sums = _mm512_add_epi16(sums, _mm512_maskz_permutexvar_epi16(0xffffff00, lane_ends, sums));
	const __m512i lane_ends_before = _mm512_sub_epi16(lane_ends, _mm512_set1_epi16(8));
	return _mm512_add_epi16(
		sums, _mm512_maskz_permutexvar_epi16(0xffff0000, lane_ends_before, sums));
}

/* The counts of set bits of 32 masks. */
WIDE_INLINE __m512i count_bits(const uint64_t *masks)
{
	const __m128i a = _mm512_cvtepi64_epi16(_mm512_popcnt_epi64(_mm512_loadu_si512(masks)));
	const __m128i b = _mm512_cvtepi64_epi16(_mm512_popcnt_epi64(_mm512_loadu_si512(masks + 8)));
	const __m128i c =
		_mm512_cvtepi64_epi16(_mm512_popcnt_epi64(_mm512_loadu_si512(masks + 16)));
	const __m128i d =
		_mm512_cvtepi64_epi16(_mm512_popcnt_epi64(_mm512_loadu_si512(masks + 24)));
	const __m512i low = _mm512_inserti64x2(_mm512_castsi128_si512(a), b, 1);
	return _mm512_inserti64x2(_mm512_inserti64x2(low, c, 2), d, 3);
}

WIDE_INLINE void fill_counts(struct ulp_tile *tile)
{
	uint16_t ends[32]; /* the end of the lane before */
	for (unsigned i = 0; i < 32; i++)
		ends[i] = (uint16_t)(i < 8 ? 7 : i / 8 * 8 - 1);
	const __m512i lane_ends = _mm512_loadu_si512(ends);
	for (unsigned class = 0; class < ULP_CLASSES_MAX; class ++) {
		const __m512i low = count_bits(tile->masks[class]);
		const __m512i high = count_bits(tile->masks[class] + 32);
		const __m512i low_sums = running_sums(low, lane_ends);
		const __m512i half = _mm512_permutexvar_epi16(_mm512_set1_epi16(31), low_sums);
		const __m512i high_sums = _mm512_add_epi16(running_sums(high, lane_ends), half);
		_mm512_storeu_si512(tile->before[class], _mm512_sub_epi16(low_sums, low));
		_mm512_storeu_si512(tile->before[class] + 32, _mm512_sub_epi16(high_sums, high));
		tile->totals[class] = tile->before[class][63] +
			(uint32_t)__builtin_popcountll(tile->masks[class][63]);
	}
}

/* Adds the positions of the words that differ, of 32, behind the positions found before. Returns
 * how many positions there are now. */
WIDE_INLINE size_t add_changed(
	__mmask32 differing, __m512i positions, struct ulp_tile *tile, size_t found)
{
	_mm512_storeu_si512(
		tile->changed + found, _mm512_maskz_compress_epi16(differing, positions));
	return found + (unsigned)__builtin_popcount(_cvtmask32_u32(differing));
}

/* Returns how many positions it wrote to tile->changed. */
WIDE_INLINE size_t find_changed(
	const uint8_t *base, const uint8_t *next, unsigned width, struct ulp_tile *tile)
{
	uint16_t first[32];
	size_t found = 0;
	for (unsigned i = 0; i < 32; i++)
		first[i] = (uint16_t)i;
	__m512i positions = _mm512_loadu_si512(first);
	for (size_t at = 0; at < (size_t)ULP_TILE_WORDS * width; at += 64) {
		const __m512i old = _mm512_loadu_si512(base + at);
		const __m512i new = _mm512_loadu_si512(next + at);
		ulp_tile_prefetch(next + at, width);
		if (width == 2) {
			found = add_changed(
				_mm512_cmpneq_epi16_mask(old, new), positions, tile, found);
		} else {
			const uint64_t differing =
				_cvtmask64_u64(_mm512_cmpneq_epi8_mask(old, new));
			found = add_changed(
				_cvtu32_mask32((uint32_t)differing), positions, tile, found);
			positions = _mm512_add_epi16(positions, _mm512_set1_epi16(32));
			found = add_changed(_cvtu32_mask32((uint32_t)(differing >> 32)), positions,
				tile, found);
		}
		positions = _mm512_add_epi16(positions, _mm512_set1_epi16(32));
	}
	return found;
}

WIDE_INLINE size_t scan_tiles(const struct ulp_view *view, const uint8_t *next, size_t from,
	size_t to, struct ulp_scan *scan, unsigned width)
{
	const struct classifier classifier = classifier_of(view);
	struct ulp_tile tile;
	size_t at = from;
	ASSERT(from <= to && from % ULP_SCAN_GROUP == 0);
	for (; to - at >= ULP_TILE_WORDS; at += ULP_TILE_WORDS) {
		const uint8_t *const base = view->base + at * width;
		const uint8_t *const result = next + at * width;
		fill_masks(&classifier, base, width, &tile);
		fill_counts(&tile);
		ulp_tile_collect(
			&tile, find_changed(base, result, width, &tile), base, result, width, scan);
	}
	return at;
}

WIDE static void scan(const struct ulp_view *view, const uint8_t *next, size_t from, size_t to,
	struct ulp_scan *scan)
{
	const size_t at = view->format.width == 1 ? scan_tiles(view, next, from, to, scan, 1)
						  : scan_tiles(view, next, from, to, scan, 2);
	ulp_scan_portable(view, next, at, to, scan);
}

WIDE_INLINE unsigned select_bit(uint64_t mask, unsigned n)
{
	return (unsigned)__builtin_ctzll(_pdep_u64(UINT64_C(1) << n, mask));
}

WIDE_INLINE unsigned not_above(const uint16_t *numbers, uint16_t limit)
{
	const __m512i limits = _mm512_set1_epi16((short)limit);
	const uint32_t low =
		_cvtmask32_u32(_mm512_cmple_epu16_mask(_mm512_loadu_si512(numbers), limits));
	const uint32_t high =
		_cvtmask32_u32(_mm512_cmple_epu16_mask(_mm512_loadu_si512(numbers + 32), limits));
	return (unsigned)__builtin_popcountll((uint64_t)high << 32 | low);
}

WIDE_INLINE size_t patch_tiles(const struct ulp_view *view, size_t from, size_t to,
	struct ulp_patch *patch, uint8_t *into, unsigned width)
{
	const struct ulp_tile_ways ways = {not_above, select_bit};
	const struct classifier classifier = classifier_of(view);
	struct ulp_tile tile;
	size_t at = from;
	ASSERT(from <= to && from % ULP_SCAN_GROUP == 0);
	for (; to - at >= ULP_TILE_WORDS; at += ULP_TILE_WORDS) {
		const uint8_t *const base = view->base + at * width;
		uint8_t *const result = into + at * width;
		fill_masks(&classifier, base, width, &tile);
		fill_counts(&tile);
		if (result != base)
			memcpy(result, base, (size_t)ULP_TILE_WORDS * width);
		ulp_tile_move(&tile, ways, width, base, patch, result);
	}
	return at;
}

WIDE static void patch(
	const struct ulp_view *view, size_t from, size_t to, struct ulp_patch *patch, uint8_t *into)
{
	const size_t at = view->format.width == 1 ? patch_tiles(view, from, to, patch, into, 1)
						  : patch_tiles(view, from, to, patch, into, 2);
	ulp_patch_portable(view, at, to, patch, into);
}

const struct ulp_way *ulp_way_avx512(void)
{
	static const struct ulp_way way = {scan, patch};
	const bool works = __builtin_cpu_supports("avx512bw") &&
		__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
		__builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
		__builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("bmi") &&
		__builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
	return works ? &way : NULL;
}

#else

const struct ulp_way *ulp_way_avx512(void)
{
	return NULL;
}

#endif
