/* Range headers of Xet clients: one range for a file, one or several for a fetch URL. Pure; any
 * thread. */
#ifndef API_XET_XET_RANGE_H
#define API_XET_XET_RANGE_H

#include "base/span.h"

enum { XET_RANGES_MAX = 32 };

struct xet_range {
	uint64_t first;
	uint64_t last;  /* inclusive; UINT64_MAX: to the end, also for larger numbers */
	bool is_suffix; /* the last `last` bytes */
};
/* Reads "bytes=a-b", "a-" and "-n", up to XET_RANGES_MAX of them with commas between. False for
 * anything else, also when an end lies before its beginning. */
bool xet_range_parse(struct span header, struct xet_range out[XET_RANGES_MAX], size_t *out_count);
/* Gives the bytes [*out_from, *out_to) of a file of this size that a parsed range names; not empty.
 * False when it names none. */
bool xet_range_resolve(
	const struct xet_range *range, uint64_t size, uint64_t *out_from, uint64_t *out_to);

#endif
