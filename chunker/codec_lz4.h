/* One LZ4 frame that holds one chunk, made and read with liblz4. It writes frames as Xet clients
 * do: independent blocks, no checksums, no content size. It reads any valid frame without a
 * dictionary. One thread at a time per context. */
#ifndef CHUNKER_CODEC_LZ4_H
#define CHUNKER_CODEC_LZ4_H

#include "base/error.h"
#include "base/span.h"

struct codec_lz4;
struct codec_lz4 *codec_lz4_new(void);
void codec_lz4_free(struct codec_lz4 *lz4);

/* The capacity that codec_lz4_encode needs. */
size_t codec_lz4_bound(size_t len);
/* Returns the size of the frame. `capacity` is at least codec_lz4_bound(content.len). */
size_t codec_lz4_encode(struct span content, uint8_t *into, size_t capacity);
/* Decodes exactly one frame to exactly `len` bytes; anything else is corrupt. So is a match at
 * offset 0, which liblz4 accepts. The context holds at most two of the frame's blocks of up to
 * 4 MiB each. */
int codec_lz4_decode(
	struct codec_lz4 *lz4, struct span frame, uint8_t *into, size_t len, struct error *err);
/* Whether all Xet clients read the frame alike. codec_lz4_decode must have accepted it. One client
 * takes an empty block for the end of the frame, and a content size of 0 literally. Another takes
 * the checksum of a block for content. */
bool codec_lz4_is_common(struct span frame);

#endif
