/* Byte planes, each compressed on its own: exponents shrink, mantissas do not, and in one zstd
 * block they would share one set of code lengths (bf16 weights: 0.69 of the content apart, 0.78
 * together). docs/FORMAT.md, "Codecs". */
#ifndef CHUNKER_CODEC_PLANES_H
#define CHUNKER_CODEC_PLANES_H

#include "base/format/byte_planes.h"
#include "base/format/compress.h"

enum {
	CODEC_PLANES_HEADER_BYTES = 3, /* per plane */
	CODEC_PLANES_OVERHEAD_BYTES = CODEC_PLANES_HEADER_BYTES *
		BYTE_PLANES_MAX /* most that the layout adds when no plane shrinks */
};

/* What one call works with; all borrowed, one thread at a time. */
struct codec_planes {
	struct compressor *compressor;
	uint8_t *scratch; /* as many bytes as the content */
	size_t width;     /* 2 or 4 */
};

/* Encoded size, at most content.len + CODEC_PLANES_OVERHEAD_BYTES, which `into` has room for.
 * Content is under 16 MiB. */
size_t codec_planes_encode(const struct codec_planes *planes, struct span content, uint8_t *into);
/* Exactly `len` bytes must come out; anything else is corrupt. */
int codec_planes_decode(const struct codec_planes *planes, struct span stored, uint8_t *into,
	size_t len, struct error *err);

#endif
