/* zstd frames, one call each; over libzstd (its one home). A context is used by one thread at a
 * time. */
#ifndef BASE_FORMAT_COMPRESS_H
#define BASE_FORMAT_COMPRESS_H

#include "base/error.h"
#include "base/span.h"

struct compressor;
struct compressor *compressor_new(void);
void compressor_free(struct compressor *compressor);
size_t compress_bound(size_t len);
/* Compressed size, or 0 when it does not fit into capacity. */
size_t compress_zstd(
	struct compressor *compressor, struct span from, uint8_t *into, size_t capacity, int level);
/* The same for a plane of exponent bytes: few byte values, hardly a repeat. Looks for matches so
 * rarely that the entropy coder does the work: on bf16 weights smaller than level 1 and more than
 * twice as fast. */
size_t compress_zstd_plane(
	struct compressor *compressor, struct span from, uint8_t *into, size_t capacity);
/* Exactly `len` bytes must come out of one whole frame; anything else is corrupt. */
int decompress_zstd(struct compressor *compressor, struct span from, uint8_t *into, size_t len,
	struct error *err);

#endif
