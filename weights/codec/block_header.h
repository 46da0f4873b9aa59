/* The header of an ulp-class block. docs/FORMAT.md, "ulp-class blocks", has the layout. Internal to
 * block_code. */
#ifndef WEIGHTS_CODEC_BLOCK_HEADER_H
#define WEIGHTS_CODEC_BLOCK_HEADER_H

#include "weights/codec/block_code.h"
#include "weights/codec/ulp_stream.h"

enum block_mode {
	BLOCK_MODE_UNCHANGED,
	BLOCK_MODE_RAW,
	BLOCK_MODE_PLANES,
	BLOCK_MODE_XOR,
	BLOCK_MODE_WORDS,
	BLOCK_MODE_ULP,
	BLOCK_MODE_COUNT
};

struct block_header {
	enum block_mode mode;
	uint64_t result_hash;
	uint32_t payload_bytes;
	uint32_t changed;       /* BLOCK_MODE_WORDS only: changed words */
	unsigned parameter;     /* BLOCK_MODE_WORDS only: Rice parameter of the gaps */
	struct ulp_table table; /* BLOCK_MODE_ULP only */
};

/* Bytes of the word that blocks count: an element, or a byte if elements are smaller. */
size_t block_word_bytes(enum dtype dtype);
/* Returns the count of bytes written. */
size_t block_header_write(const struct block_header *header, uint8_t into[BLOCK_CODE_HEADER_MAX]);
/* Takes a header off the front of `*rest`. Fails with invalid when the header breaks the layout or
 * cannot belong to a block whose result has `result_bytes`. */
int block_header_read(struct span *rest, enum dtype dtype, uint64_t result_bytes,
	struct block_header *out_header, struct error *err);

#endif
