/* The portable way, element by element, and the choice of a way. */
#include "weights/codec/ulp_scan.h"

static inline void scan_words(const struct ulp_view *view, const uint8_t *next, size_t from,
	size_t to, struct ulp_scan *scan, unsigned width)
{
	for (size_t i = from; i < to; i++) {
		const uint16_t old = ulp_word_load(view->base + i * width, width);
		const uint16_t new = ulp_word_load(next + i * width, width);
		const unsigned class = ulp_word_class(old, view->format, view->top, view->classes);
		const uint32_t rank = scan->seen[class]++;
		if (old == new)
			continue;
		scan->keys[scan->count] = class << ULP_SCAN_GAP_BITS | (rank - scan->from[class]);
		scan->steps[scan->count++] = ulp_word_step(old, new, width);
		scan->from[class] = rank + 1;
	}
}

void ulp_scan_portable(const struct ulp_view *view, const uint8_t *next, size_t from, size_t to,
	struct ulp_scan *scan)
{
	ASSERT(view->classes > 0 && view->classes <= ULP_CLASSES_MAX);
	if (view->format.width == 1)
		scan_words(view, next, from, to, scan, 1);
	else
		scan_words(view, next, from, to, scan, 2);
}

static inline void patch_words(const struct ulp_view *view, size_t from, size_t to,
	struct ulp_patch *patch, uint8_t *into, unsigned width)
{
	for (size_t i = from; i < to; i++) {
		uint16_t word = ulp_word_load(view->base + i * width, width);
		const unsigned class = ulp_word_class(word, view->format, view->top, view->classes);
		if (patch->seen[class]++ == *patch->ranks[class]) {
			word = ulp_word_moved(word, *patch->steps[class]++, width);
			patch->ranks[class]++;
		}
		ulp_word_store(into + i * width, width, word);
	}
}

void ulp_patch_portable(
	const struct ulp_view *view, size_t from, size_t to, struct ulp_patch *patch, uint8_t *into)
{
	ASSERT(view->classes > 0 && view->classes <= ULP_CLASSES_MAX);
	if (view->format.width == 1)
		patch_words(view, from, to, patch, into, 1);
	else
		patch_words(view, from, to, patch, into, 2);
}

static const struct ulp_way portable = {ulp_scan_portable, ulp_patch_portable};

static const struct ulp_way *best_way(void)
{
	const struct ulp_way *const avx512 = ulp_way_avx512();
	const struct ulp_way *const avx2 = ulp_way_avx2();
	return avx512 != NULL ? avx512 : avx2 != NULL ? avx2 : &portable;
}

const struct ulp_way *ulp_way(enum block_code_path path)
{
	switch (path) {
	case BLOCK_CODE_PORTABLE:
		return &portable;
	case BLOCK_CODE_AVX2:
		return ulp_way_avx2();
	case BLOCK_CODE_AVX512:
		return ulp_way_avx512();
	default:
		return best_way();
	}
}
