/* The Range header of one request against one object size (docs/parts-protocol-s3.md, "Ranges").
 * Pure; any thread. */
#ifndef API_OBJECTS_BYTE_RANGE_H
#define API_OBJECTS_BYTE_RANGE_H

#include "base/span.h"

enum byte_range_kind {
	/* no range, or one that S3 ignores: several ranges, another unit, nonsense. 200 */
	BYTE_RANGE_WHOLE,
	BYTE_RANGE_PART,         /* 206, also when the part is everything */
	BYTE_RANGE_UNSATISFIABLE /* 416 */
};
struct byte_range {
	enum byte_range_kind kind;
	/* meaningful unless unsatisfiable: [first, first + length) lies within the object */
	uint64_t first;
	uint64_t length;
};

/* `header` empty: absent. Never fails: what is malformed asks for the whole object. */
struct byte_range byte_range_parse(struct span header, uint64_t size);

#endif
