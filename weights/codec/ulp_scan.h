/* The two passes over the elements of an ulp-class block: finding what changed, and changing it.
 * Both go in element order and keep, per class, how many of its elements they have seen; a pass may
 * be cut in pieces at multiples of ULP_SCAN_GROUP elements. The ways for wider processors give the
 * same. */
#ifndef WEIGHTS_CODEC_ULP_SCAN_H
#define WEIGHTS_CODEC_ULP_SCAN_H

#include "weights/codec/block_code.h"
#include "weights/codec/ulp_word.h"

enum {
	ULP_SCAN_GROUP = 64,
	ULP_SCAN_LANES = 16, /* per-class state is padded to this, for vectors */
	ULP_SCAN_GAP_BITS = 20
};

/* What both passes read. */
struct ulp_view {
	const uint8_t *base;
	struct ulp_format format;
	uint8_t top;     /* exponents from here on are class 0 */
	uint8_t classes; /* 1..ULP_CLASSES_MAX */
};

/* Changes in element order. `keys` and `steps` have room for all elements and ULP_SCAN_GROUP
 * more. */
struct ulp_scan {
	uint32_t seen[ULP_SCAN_LANES]; /* elements of the class */
	uint32_t from[ULP_SCAN_LANES]; /* as `seen`, behind the last change in it */
	/* class << ULP_SCAN_GAP_BITS | elements of the class between its last change and this */
	uint32_t *keys;
	int16_t *steps;
	size_t count;
};

/* Where to change: per class the ranks (positions counted over its elements) in ascending order,
 * closed by UINT32_MAX, and the steps. */
struct ulp_patch {
	uint32_t seen[ULP_SCAN_LANES];
	const uint32_t *ranks[ULP_SCAN_LANES];
	const int16_t *steps[ULP_SCAN_LANES];
};

typedef void ulp_scan_fn(const struct ulp_view *view, const uint8_t *next, size_t from, size_t to,
	struct ulp_scan *scan);
/* Writes into[from..to) whole. No rank below what was seen may be left over: where ranks are not
 * met the pass just changes less. */
typedef void ulp_patch_fn(const struct ulp_view *view, size_t from, size_t to,
	struct ulp_patch *patch, uint8_t *into);

struct ulp_way {
	ulp_scan_fn *scan;
	ulp_patch_fn *patch;
};

ulp_scan_fn ulp_scan_portable;
ulp_patch_fn ulp_patch_portable;
/* NULL when this processor lacks what the way needs. */
const struct ulp_way *ulp_way(enum block_code_path path);
const struct ulp_way *ulp_way_avx2(void);
const struct ulp_way *ulp_way_avx512(void);

#endif
