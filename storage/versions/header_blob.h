/* The stored headers of a version as one blob: u32 length and bytes of each name and value,
 * little-endian. Internal to storage. */
#ifndef STORAGE_VERSIONS_HEADER_BLOB_H
#define STORAGE_VERSIONS_HEADER_BLOB_H

#include "storage/versions/object.h"

void header_blob_write(const struct object_header *headers, size_t count, struct buffer *out);
/* Headers that lie in `blob` (kept as long as they are); corrupt when malformed. */
int header_blob_read(struct span blob, struct arena *arena,
	const struct object_header **out_headers, size_t *out_count, struct error *err);
/* The value of the first header of this name (in lower case), in `blob`; empty when there is none,
 * or the blob is malformed. */
struct span header_blob_find(struct span blob, const char *name);

#endif
