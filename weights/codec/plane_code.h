/* Words as byte planes. Each plane is stored as it is or as one zstd frame, whichever is smaller.
 * docs/FORMAT.md, "Byte planes". */
#ifndef WEIGHTS_CODEC_PLANE_CODE_H
#define WEIGHTS_CODEC_PLANE_CODE_H

#include "base/format/compress.h"

/* Borrowed; one thread at a time. */
struct plane_code {
	struct compressor *compressor;
	uint8_t *scratch; /* as many bytes as the words */
	size_t width;     /* bytes of a word: 1, 2, 4 or 8 */
};

/* The most bytes that `words` bytes can take. */
size_t plane_code_bound(size_t words);
/* Encodes whole words. `into` has room for plane_code_bound. Returns the count of bytes written. */
size_t plane_code_encode(const struct plane_code *planes, struct span words, uint8_t *into);
/* Decodes all of `stored` to exactly `len` bytes, a whole number of words. Stored bytes that decode
 * to another length are invalid. */
int plane_code_decode(const struct plane_code *planes, struct span stored, uint8_t *into,
	size_t len, struct error *err);

#endif
