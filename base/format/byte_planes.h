/* Regroups the bytes of `width`-byte elements: first byte 0 of every element, then byte 1 of every
 * element, and so on. The elements need not be aligned to the content: byte i goes to plane i %
 * width, so an incomplete last element goes to the first planes. The widths are 1, 2, 4 and 8. Any
 * thread. */
#ifndef BASE_FORMAT_BYTE_PLANES_H
#define BASE_FORMAT_BYTE_PLANES_H

#include "base/span.h"

enum { BYTE_PLANES_MAX = 8 };

/* The length of plane `plane` of `len` bytes. */
size_t byte_planes_length(size_t len, size_t width, size_t plane);
/* `into` has room for content.len bytes: the planes one after the other. */
void byte_planes_split(struct span content, size_t width, uint8_t *into);
/* The inverse. planes[k] has byte_planes_length(len, width, k) bytes. */
void byte_planes_join(
	const uint8_t *const planes[BYTE_PLANES_MAX], size_t width, uint8_t *into, size_t len);

#endif
