/* The passes of ulp_scan for processors with AVX2 and BMI2. They work tile by tile (ulp_tile.h):
 * classify the words, make a mask of each class for each group, count the bits. The last elements,
 * too few for a tile, go the portable way. ulp_avx512.c has the same outline. Each of the two is
 * compiled for its own instructions, so they share only what ulp_tile.h inlines into both. */
#include "weights/codec/ulp_scan.h"

#if defined __x86_64__ && defined __GNUC__
#include <immintrin.h>

#include "weights/codec/ulp_tile.h"

/* Functions that take a width are inlined where the width is a constant. */
#define WIDE        __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define WIDE_INLINE WIDE static inline __attribute__((always_inline))

/* The view of a pass, in registers. */
struct classifier {
	__m128i shift;
	__m256i mask;
	__m256i top;
	__m256i last;
};

WIDE static struct classifier classifier_of(const struct ulp_view *view)
{
	return (struct classifier){.shift = _mm_cvtsi32_si128(view->format.shift),
		.mask = _mm256_set1_epi8((char)view->format.mask),
		.top = _mm256_set1_epi8((char)view->top),
		.last = _mm256_set1_epi8((char)(view->classes - 1))};
}

WIDE_INLINE __m256i load(const uint8_t *from)
{
	return _mm256_loadu_si256((const __m256i *)from);
}

/* The classes of 32 words. Two-byte words are narrowed within 128-bit lanes, so the quarters are
 * put back in order afterwards. */
WIDE_INLINE __m256i classify(
	const struct classifier *classifier, const uint8_t *words, unsigned width)
{
	__m256i exponents = _mm256_srl_epi16(load(words), classifier->shift);
	if (width == 2) {
		const __m256i bytes = _mm256_set1_epi16(0xff);
		const __m256i upper = _mm256_srl_epi16(load(words + 32), classifier->shift);
		const __m256i narrow = _mm256_packus_epi16(
			_mm256_and_si256(exponents, bytes), _mm256_and_si256(upper, bytes));
		exponents = _mm256_permute4x64_epi64(narrow, 0xd8);
	}
	exponents = _mm256_and_si256(exponents, classifier->mask);
	return _mm256_min_epu8(_mm256_subs_epu8(classifier->top, exponents), classifier->last);
}

/* Bit `bit` of each of 64 bytes. */
WIDE_INLINE uint64_t bit_of_each(__m256i low, __m256i high, int bit)
{
	const uint32_t lower = (uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(low, 7 - bit));
	const uint32_t upper = (uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(high, 7 - bit));
	return (uint64_t)upper << 32 | lower;
}

/* A class is a number of four bits. From a mask for each of these bits, plain logic makes the masks
 * of the classes. */
WIDE_INLINE void fill_group(__m256i low, __m256i high, unsigned group, struct ulp_tile *tile)
{
	const uint64_t bits[] = {bit_of_each(low, high, 0), bit_of_each(low, high, 1),
		bit_of_each(low, high, 2), bit_of_each(low, high, 3)};
	const uint64_t fours[] = {~bits[3] & ~bits[2], ~bits[3] & bits[2], bits[3] & ~bits[2]};
	const uint64_t ones[] = {
		~bits[1] & ~bits[0], ~bits[1] & bits[0], bits[1] & ~bits[0], bits[1] & bits[0]};
#pragma GCC unroll 12
	for (unsigned class = 0; class < ULP_CLASSES_MAX; class ++)
		tile->masks[class][group] = fours[class / 4] & ones[class % 4];
}

WIDE_INLINE void fill_masks(const struct classifier *classifier, const uint8_t *words,
	unsigned width, struct ulp_tile *tile)
{
	for (unsigned group = 0; group < ULP_TILE_GROUPS; group++) {
		const uint8_t *const at = words + group * ULP_SCAN_GROUP * width;
		const __m256i low = classify(classifier, at, width);
		const __m256i high = classify(classifier, at + 32 * width, width);
		_mm256_storeu_si256((__m256i *)(tile->classes + group * ULP_SCAN_GROUP), low);
		_mm256_storeu_si256((__m256i *)(tile->classes + group * ULP_SCAN_GROUP + 32), high);
		ulp_tile_prefetch(at, width);
		ulp_tile_prefetch(at + 32 * width, width);
		fill_group(low, high, group, tile);
	}
}

WIDE_INLINE void fill_counts(struct ulp_tile *tile)
{
	for (unsigned class = 0; class < ULP_CLASSES_MAX; class ++) {
		uint32_t sum = 0;
		for (unsigned group = 0; group < ULP_TILE_GROUPS; group++) {
			tile->before[class][group] = (uint16_t)sum;
			sum += (uint32_t)_mm_popcnt_u64(tile->masks[class][group]);
		}
		tile->totals[class] = sum;
	}
}

/* Bit i is set when word i of 32 differs. */
WIDE_INLINE uint32_t differing(const uint8_t *a, const uint8_t *b, unsigned width)
{
	if (width == 1)
		return ~(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(load(a), load(b)));
	const __m256i low = _mm256_cmpeq_epi16(load(a), load(b));
	const __m256i high = _mm256_cmpeq_epi16(load(a + 32), load(b + 32));
	return ~(uint32_t)_mm256_movemask_epi8(
		_mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xd8));
}

/* Returns how many positions it wrote to tile->changed. Few of 32 words change. So it always writes
 * four positions, even if there are fewer: that is quicker than branches that guess wrong. */
WIDE_INLINE size_t find_changed(
	const uint8_t *base, const uint8_t *next, unsigned width, struct ulp_tile *tile)
{
	size_t found = 0;
	for (unsigned from = 0; from < ULP_TILE_WORDS; from += 32) {
		uint32_t bits = differing(base + from * width, next + from * width, width);
		ulp_tile_prefetch(next + from * width, width);
		const size_t all = found + (unsigned)__builtin_popcount(bits);
#pragma GCC unroll 4
		for (unsigned i = 0; i < 4; i++, bits = _blsr_u32(bits))
			tile->changed[found + i] = (uint16_t)(from + _tzcnt_u32(bits));
		for (found += 4; bits != 0; bits = _blsr_u32(bits))
			tile->changed[found++] = (uint16_t)(from + _tzcnt_u32(bits));
		found = all;
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

/* How many numbers are at most the limit. All are below 2^15, so a signed comparison is right. */
WIDE_INLINE unsigned not_above(const uint16_t *numbers, uint16_t limit)
{
	const __m256i limits = _mm256_set1_epi16((short)limit);
	unsigned above = 0;
#pragma GCC unroll 2
	for (unsigned i = 0; i < ULP_TILE_GROUPS; i += 32) {
		const __m256i low = _mm256_cmpgt_epi16(
			_mm256_loadu_si256((const __m256i *)(numbers + i)), limits);
		const __m256i high = _mm256_cmpgt_epi16(
			_mm256_loadu_si256((const __m256i *)(numbers + i + 16)), limits);
		above += (unsigned)__builtin_popcount(
			(uint32_t)_mm256_movemask_epi8(_mm256_packs_epi16(low, high)));
	}
	return ULP_TILE_GROUPS - above;
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

const struct ulp_way *ulp_way_avx2(void)
{
	static const struct ulp_way way = {scan, patch};
	const bool works = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
		__builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
	return works ? &way : NULL;
}

#else

const struct ulp_way *ulp_way_avx2(void)
{
	return NULL;
}

#endif
