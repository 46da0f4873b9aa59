/* Splits elements into byte planes and compresses each plane on its own. Exponents shrink and
 * mantissas do not; in one zstd block they would share one set of code lengths. bf16 weights become
 * 0.69 of their size this way, and 0.78 in one block. docs/FORMAT.md, "Codecs". */
#ifndef CHUNKER_CODEC_PLANES_H
#define CHUNKER_CODEC_PLANES_H

#include "base/format/byte_planes.h"
#include "base/format/compress.h"

enum {
	CODEC_PLANES_HEADER_BYTES = 3, /* per plane */
	/* the most that the layout adds when no plane shrinks */
	CODEC_PLANES_OVERHEAD_BYTES = CODEC_PLANES_HEADER_BYTES * BYTE_PLANES_MAX
};

/* The memory and tools of one call, all borrowed. One thread at a time. */
struct codec_planes {
	struct compressor *compressor;
	uint8_t *scratch; /* as many bytes as the content */
	size_t width;     /* 2 or 4 */
};

/* Returns the encoded size: at most content.len + CODEC_PLANES_OVERHEAD_BYTES, which must fit into
 * `into`. Content is under 16 MiB. */
size_t codec_planes_encode(const struct codec_planes *planes, struct span content, uint8_t *into);
/* Writes exactly `len` bytes. Stored bytes that decode to another length are corrupt. */
int codec_planes_decode(const struct codec_planes *planes, struct span stored, uint8_t *into,
	size_t len, struct error *err);

#endif
