/* zstd frames, one call for each; over libzstd (its one home). A compressor is used by one thread
 * at a time. */
#ifndef BASE_FORMAT_COMPRESS_H
#define BASE_FORMAT_COMPRESS_H

#include "base/error.h"
#include "base/span.h"

struct compressor;
struct compressor *compressor_new(void);
void compressor_free(struct compressor *compressor);
size_t compress_bound(size_t len);
/* Returns the compressed size, or 0 when it does not fit into `capacity`. */
size_t compress_zstd(
	struct compressor *compressor, struct span from, uint8_t *into, size_t capacity, int level);
/* The same for a plane of exponent bytes, which has few byte values and hardly a repeat. It looks
 * for matches so rarely that the entropy coder does the work: on bf16 weights the result is smaller
 * than that of level 1 and takes less than half its time. */
size_t compress_zstd_plane(
	struct compressor *compressor, struct span from, uint8_t *into, size_t capacity);
/* `from` must be one whole frame that holds exactly `len` bytes; anything else is corrupt. */
int decompress_zstd(struct compressor *compressor, struct span from, uint8_t *into, size_t len,
	struct error *err);

#endif
