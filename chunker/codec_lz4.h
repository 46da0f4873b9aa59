/* One LZ4 frame holding one chunk; over liblz4 (its one home). Frames written: independent blocks,
 * no checksums, no content size, as Xet clients write them. Frames read: any valid one without a
 * dictionary. One thread at a time per context. */
#ifndef CHUNKER_CODEC_LZ4_H
#define CHUNKER_CODEC_LZ4_H

#include "base/error.h"
#include "base/span.h"

struct codec_lz4;
struct codec_lz4 *codec_lz4_new(void);
void codec_lz4_free(struct codec_lz4 *lz4);

/* Room that codec_lz4_encode needs. */
size_t codec_lz4_bound(size_t len);
/* Size of the frame; `capacity` is at least codec_lz4_bound(content.len). */
size_t codec_lz4_encode(struct span content, uint8_t *into, size_t capacity);
/* Exactly `len` bytes must come out of exactly one frame; anything else is corrupt, a match at
 * offset 0 included (liblz4 takes it). The context holds at most two of the frame's blocks, 4 MiB
 * each. */
int codec_lz4_decode(
	struct codec_lz4 *lz4, struct span frame, uint8_t *into, size_t len, struct error *err);
/* Of a frame that was just decoded: whether all Xet clients read it alike. One takes an empty block
 * for the end and a content size of 0 at its word, another the checksum of a block for its
 * content. */
bool codec_lz4_is_common(struct span frame);

#endif
