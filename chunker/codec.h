/* How a chunk's bytes are stored. A cheap trial chooses the codec of each chunk; raw wins ties. The
 * numbers are on disk and never change. 0 to 2 are Xet's. 64 and up are ours and are never sent to
 * Xet clients. docs/FORMAT.md, "Codecs". A context belongs to one thread. Content is a chunk of at
 * most CHUNK_MAX_BYTES, which codec_encode asserts and codec_decode checks. */
#ifndef CHUNKER_CODEC_H
#define CHUNKER_CODEC_H

#include "base/error.h"
#include "base/span.h"

enum codec {
	CODEC_RAW = 0,
	CODEC_LZ4 = 1,     /* one LZ4 frame */
	CODEC_BG4_LZ4 = 2, /* four byte groups, then one LZ4 frame */
	CODEC_ZSTD = 64,   /* one zstd frame */
	/* for 2-byte elements (bf16, fp16): byte planes, each raw or a zstd frame */
	CODEC_PLANES2 = 65,
	CODEC_PLANES4 = 66 /* the same for 4-byte elements (fp32) */
};

struct codec_context;
struct codec_context *codec_context_new(void);
void codec_context_free(struct codec_context *context);

bool codec_known(uint8_t number);
bool codec_private(enum codec codec); /* Xet clients cannot decode it */
/* The capacity that codec_encode needs for any content of `len` bytes. */
size_t codec_bound(size_t len);
/* The private codec whose result will be smallest, judged from samples, or CODEC_RAW. Cheap on
 * incompressible bytes. */
enum codec codec_choose(struct codec_context *context, struct span content);
/* Returns the encoded size, or 0 when it would not be smaller than the content: the caller then
 * stores it raw. `capacity` is at least codec_bound(content.len). */
size_t codec_encode(struct codec_context *context, enum codec codec, struct span content,
	uint8_t *into, size_t capacity);
/* Writes exactly `len` bytes. Stored bytes that decode to another length, or not at all, are
 * corrupt; so is an unknown codec. */
int codec_decode(struct codec_context *context, enum codec codec, struct span stored, uint8_t *into,
	size_t len, struct error *err);
/* Whether all decoders of the codec read `stored` alike. codec_decode must have accepted it. */
bool codec_is_common(enum codec codec, struct span stored);

#endif
