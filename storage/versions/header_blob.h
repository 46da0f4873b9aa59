/* The stored headers of a version as one blob: for each name and each value a u32 length and its
 * bytes, little-endian. Internal to storage. */
#ifndef STORAGE_VERSIONS_HEADER_BLOB_H
#define STORAGE_VERSIONS_HEADER_BLOB_H

#include "storage/versions/object.h"

void header_blob_write(const struct object_header *headers, size_t count, struct buffer *out);
/* Gives headers that lie in `blob`, which must live as long as they do. corrupt when malformed. */
int header_blob_read(struct span blob, struct arena *arena,
	const struct object_header **out_headers, size_t *out_count, struct error *err);
/* The value, in `blob`, of the first header with this lower-case name; empty when there is none or
 * the blob is malformed. */
struct span header_blob_find(struct span blob, const char *name);

#endif
