/* How a chunk's bytes are stored. Chosen per chunk by a cheap trial; raw wins ties. Numbers are on
 * disk: pinned. 0..2 are Xet's, 64 and up are ours and never leave towards Xet clients.
 * docs/FORMAT.md, "Codecs". A context is one thread's. Content is a chunk: at most CHUNK_MAX_BYTES,
 * which codec_encode asserts and codec_decode checks. */
#ifndef CHUNKER_CODEC_H
#define CHUNKER_CODEC_H

#include "base/error.h"
#include "base/span.h"

enum codec {
	CODEC_RAW = 0,
	CODEC_LZ4 = 1,     /* one LZ4 frame */
	CODEC_BG4_LZ4 = 2, /* four byte groups, then one LZ4 frame */
	CODEC_ZSTD = 64,   /* one zstd frame */
	/* bytes of 2-byte elements split into planes, each raw or a zstd frame: bf16, fp16 */
	CODEC_PLANES2 = 65,
	CODEC_PLANES4 = 66 /* the same for 4-byte elements: fp32 */
};

struct codec_context;
struct codec_context *codec_context_new(void);
void codec_context_free(struct codec_context *context);

bool codec_known(uint8_t number);
bool codec_private(enum codec codec); /* not understood by Xet clients */
/* Room that codec_encode needs for any input of `len` bytes. */
size_t codec_bound(size_t len);
/* CODEC_RAW, or the private codec that a trial on samples promises to be smallest. Cheap on
 * incompressible bytes. */
enum codec codec_choose(struct codec_context *context, struct span content);
/* Encoded size; 0 when it would not be smaller than the content (store raw then). `capacity` is at
 * least codec_bound(content.len). */
size_t codec_encode(struct codec_context *context, enum codec codec, struct span content,
	uint8_t *into, size_t capacity);
/* Exactly `len` bytes must come out; anything else is corrupt, as is an unknown codec. */
int codec_decode(struct codec_context *context, enum codec codec, struct span stored, uint8_t *into,
	size_t len, struct error *err);
/* Of what was just decoded: whether all who know the codec decode it alike. */
bool codec_is_common(enum codec codec, struct span stored);

#endif
