/* Changed words of any kind: their places as Rice gaps, and the XOR of base and result as byte
 * planes. docs/FORMAT.md, "Words". */
#ifndef WEIGHTS_CODEC_WORD_CODE_H
#define WEIGHTS_CODEC_WORD_CODE_H

#include "weights/codec/plane_code.h"

/* The memory of one call, borrowed. */
struct word_code {
	struct plane_code planes; /* its width is that of the words */
	uint32_t *gaps;           /* one for each word of the block */
	uint8_t *words;           /* as many bytes as the block */
};

struct word_code_changes {
	size_t count;
	unsigned parameter; /* Rice parameter of the gaps */
};
/* Finds the changed words between two arrays of equal length. Leaves their gaps and differences in
 * the memory of `code`. */
struct word_code_changes word_code_scan(
	const struct word_code *code, struct span base, struct span next);
/* The most bytes that `changes` changed words can take. */
size_t word_code_bound(const struct word_code *code, size_t changes);
/* Encodes what the last scan found. `into` has room for the bound. Returns the count of bytes
 * written. */
size_t word_code_encode(
	const struct word_code *code, const struct word_code_changes *changes, uint8_t *into);
/* Leaves the positions of the changed words, rising, in the `gaps` of `code`, and the XOR of base
 * and result of each in its `words`. The caller has checked `changes`: at most one for each word of
 * a block of `bytes`. Fails with invalid when the payload is malformed. */
int word_code_read(const struct word_code *code, const struct word_code_changes *changes,
	struct span payload, size_t bytes, struct error *err);
/* The same, and makes the result of `base` out of it. `into` has base.len bytes. */
int word_code_decode(const struct word_code *code, const struct word_code_changes *changes,
	struct span payload, struct span base, uint8_t *into, struct error *err);

#endif
