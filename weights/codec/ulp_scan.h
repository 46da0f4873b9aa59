/* The two passes over the elements of an ulp-class block: one finds the changes, the other makes
 * them. Both go in element order and count the elements of each class that they have seen. A pass
 * may be cut into pieces at multiples of ULP_SCAN_GROUP elements. A "way" is one implementation of
 * both passes; all ways give the same results. */
#ifndef WEIGHTS_CODEC_ULP_SCAN_H
#define WEIGHTS_CODEC_ULP_SCAN_H

#include "weights/codec/block_code.h"
#include "weights/codec/ulp_word.h"

enum {
	ULP_SCAN_GROUP = 64,
	ULP_SCAN_LANES = 16, /* per-class state is padded to this, for vectors */
	ULP_SCAN_GAP_BITS = 20
};

/* The input of both passes. */
struct ulp_view {
	const uint8_t *base;
	struct ulp_format format;
	uint8_t top;     /* exponents from here on are class 0 */
	uint8_t classes; /* 1..ULP_CLASSES_MAX */
};

/* The changes found so far, in element order. `keys` and `steps` have room for all elements and
 * ULP_SCAN_GROUP more. */
struct ulp_scan {
	uint32_t seen[ULP_SCAN_LANES]; /* elements of the class so far */
	uint32_t from[ULP_SCAN_LANES]; /* elements of the class up to its last change */
	/* class << ULP_SCAN_GAP_BITS | elements of the class since its change before */
	uint32_t *keys;
	int16_t *steps;
	size_t count;
};

/* The changes to make. For each class: the ranks in ascending order, closed by UINT32_MAX, and the
 * steps. A rank is a position that counts only elements of the class. */
struct ulp_patch {
	uint32_t seen[ULP_SCAN_LANES];
	const uint32_t *ranks[ULP_SCAN_LANES];
	const int16_t *steps[ULP_SCAN_LANES];
};

typedef void ulp_scan_fn(const struct ulp_view *view, const uint8_t *next, size_t from, size_t to,
	struct ulp_scan *scan);
/* Writes all of into[from..to). The ranks that are left must not be below `seen`. A rank that the
 * elements do not reach changes nothing. */
typedef void ulp_patch_fn(const struct ulp_view *view, size_t from, size_t to,
	struct ulp_patch *patch, uint8_t *into);

struct ulp_way {
	ulp_scan_fn *scan;
	ulp_patch_fn *patch;
};

ulp_scan_fn ulp_scan_portable;
ulp_patch_fn ulp_patch_portable;
/* NULL when this processor lacks instructions that the way needs. */
const struct ulp_way *ulp_way(enum block_code_path path);
const struct ulp_way *ulp_way_avx2(void);
const struct ulp_way *ulp_way_avx512(void);

#endif
