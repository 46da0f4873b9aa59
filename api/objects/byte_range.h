/* The Range header of a request for an object of a given size (docs/protocol/s3.md, GetObject).
 * Pure; any thread. */
#ifndef API_OBJECTS_BYTE_RANGE_H
#define API_OBJECTS_BYTE_RANGE_H

#include "base/span.h"

enum byte_range_kind {
	/* status 200: no range, or one that S3 ignores (several ranges, another unit, malformed) */
	BYTE_RANGE_WHOLE,
	BYTE_RANGE_PART,         /* status 206, also when the part is the whole object */
	BYTE_RANGE_UNSATISFIABLE /* status 416 */
};
struct byte_range {
	enum byte_range_kind kind;
	/* valid unless unsatisfiable: [first, first + length) lies within the object */
	uint64_t first;
	uint64_t length;
};

/* An empty `header` is an absent one. Never fails: a malformed header gives the whole object. */
struct byte_range byte_range_parse(struct span header, uint64_t size);

#endif
