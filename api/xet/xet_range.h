/* Range headers as Xet clients send them: one range for a file, one or several for a fetch URL.
 * Pure; any thread. */
#ifndef API_XET_XET_RANGE_H
#define API_XET_XET_RANGE_H

#include "base/span.h"

enum { XET_RANGES_MAX = 32 };

struct xet_range {
	uint64_t first;
	uint64_t last;  /* inclusive; UINT64_MAX: to the end. Larger numbers count as that */
	bool is_suffix; /* the last `last` bytes */
};
/* "bytes=a-b", "a-" and "-n", up to XET_RANGES_MAX of them with commas between. False when it is
 * anything else, also when an end lies before its beginning. */
bool xet_range_parse(struct span header, struct xet_range out[XET_RANGES_MAX], size_t *out_count);
/* What a range is of a file of this size: [*out_from, *out_to), not empty. False when it has none
 * of its bytes. */
bool xet_range_resolve(
	const struct xet_range *range, uint64_t size, uint64_t *out_from, uint64_t *out_to);

#endif
