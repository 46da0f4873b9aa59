/* Bytes of `width`-byte elements regrouped: first every element's byte 0, then every byte 1 and so
 * on. Element boundaries need not be known: byte i goes to plane i % width, so an uneven tail goes
 * to the first planes. Widths 1, 2, 4 and 8. Any thread. */
#ifndef BASE_FORMAT_BYTE_PLANES_H
#define BASE_FORMAT_BYTE_PLANES_H

#include "base/span.h"

enum { BYTE_PLANES_MAX = 8 };

/* Bytes of plane `plane` when `len` bytes are split. */
size_t byte_planes_length(size_t len, size_t width, size_t plane);
/* `into` takes content.len bytes: the planes one behind the other. */
void byte_planes_split(struct span content, size_t width, uint8_t *into);
/* The inverse; planes[k] has byte_planes_length(len, width, k) bytes. */
void byte_planes_join(
	const uint8_t *const planes[BYTE_PLANES_MAX], size_t width, uint8_t *into, size_t len);

#endif
