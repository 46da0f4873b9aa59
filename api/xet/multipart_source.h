/* The body of a reply with several ranges: multipart/byteranges (RFC 9110, 14.6), each part
 * streamed from a source of its own. */
#ifndef API_XET_MULTIPART_SOURCE_H
#define API_XET_MULTIPART_SOURCE_H

#include "base/stream.h"

/* 48 characters and a NUL: too long and too random to occur in any data */
enum { MULTIPART_BOUNDARY_BYTES = 49 };

struct multipart_part {
	uint64_t first;             /* offset in the whole */
	uint64_t last;              /* inclusive */
	struct body_source *source; /* gives last - first + 1 bytes; taken over */
};
void multipart_boundary(char out[MULTIPART_BOUNDARY_BYTES]);
/* `parts` is copied and has at least one part. `total` is the size of the whole, *out_length that
 * of the body. Close closes all sources. */
struct body_source *multipart_source_open(const struct multipart_part *parts, size_t count,
	uint64_t total, const char *boundary, uint64_t *out_length);

#endif
