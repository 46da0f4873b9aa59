/* The memory and tools with which one thread encodes and decodes blocks. Internal to block_code. */
#ifndef WEIGHTS_CODEC_BLOCK_CONTEXT_H
#define WEIGHTS_CODEC_BLOCK_CONTEXT_H

#include "base/format/compress.h"
#include "weights/codec/block_header.h"
#include "weights/codec/word_code.h"

struct block_code_context {
	const struct ulp_way *way;
	struct compressor *compressor;
	struct xxh3_stream *hash;       /* of the block's result */
	struct xxh3_stream *watch_base; /* the caller's, or NULL */
	struct xxh3_stream *watch_result;
	/* arrays for blocks of up to `elements` elements; NULL until first needed: */
	size_t elements;
	uint32_t *keys;       /* in element order; a decode keeps ranks here */
	uint32_t *gaps;       /* class by class */
	int16_t *found_steps; /* in element order */
	int16_t *steps;       /* class by class */
	/* the same for blocks of up to `bytes` bytes: */
	size_t bytes;
	uint8_t *words;
	uint8_t *scratch;
	size_t payload_room;  /* bytes of each payload */
	uint8_t *payloads[2]; /* the best so far, and the next try */
};

/* Makes the arrays large enough for a block; their contents are lost. */
void block_context_need(struct block_code_context *context, size_t elements, size_t bytes);
/* Hash a block in one piece or many: start, pieces in order, end. The end returns the hash of the
 * result. */
enum {
	BLOCK_CONTEXT_PIECE = 1 << 15 /* elements of a piece that stays in the cache between uses */
};
void block_context_hash_start(struct block_code_context *context);
void block_context_hash_add(
	struct block_code_context *context, struct span base, struct span result);
uint64_t block_context_hash_end(struct block_code_context *context);
/* Must come after block_context_need. */
struct word_code block_context_words(const struct block_code_context *context, enum dtype dtype);

#endif
