/* What one thread encodes and decodes blocks with. Internal to block_code. */
#ifndef WEIGHTS_BLOCK_CONTEXT_H
#define WEIGHTS_BLOCK_CONTEXT_H

#include "base/compress.h"
#include "weights/block_header.h"
#include "weights/word_code.h"

struct block_code_context {
	const struct ulp_way *way;
	struct compressor *compressor;
	/* Room, made when first needed, for blocks of up to so many elements or bytes. */
	size_t elements;
	uint32_t *keys;        /* in element order; of a decode: the ranks */
	uint32_t *gaps;        /* class by class */
	int16_t *found_steps;  /* in element order */
	int16_t *steps;        /* class by class */
	size_t bytes;
	uint8_t *words;
	uint8_t *scratch;
	size_t payload_room;
	uint8_t *payloads[2];  /* the best so far, and the next try */
};

void block_context_need(struct block_code_context *context, size_t elements, size_t bytes);
/* To use after block_context_need. */
struct word_code block_context_words(const struct block_code_context *context, enum dtype dtype);

#endif
