/* Changed words of any kind: where they are, as Rice gaps, and what base and result differ by
 * (XOR), as byte planes. docs/FORMAT.md, "Words". */
#ifndef WEIGHTS_CODEC_WORD_CODE_H
#define WEIGHTS_CODEC_WORD_CODE_H

#include "weights/codec/plane_code.h"

/* Room for one call; borrowed. */
struct word_code {
	struct plane_code planes; /* of the words' width */
	uint32_t *gaps;           /* one for each word of the block */
	uint8_t *words;           /* as many bytes as the block */
};

struct word_code_changes {
	size_t count;
	unsigned parameter;
};
/* Finds the changed words of two runs of equal length; leaves gaps and differences in `code`. */
struct word_code_changes word_code_scan(
	const struct word_code *code, struct span base, struct span next);
size_t word_code_bound(const struct word_code *code, size_t changes);
/* Of what the last scan found. `into` has room for the bound; gives the bytes used. */
size_t word_code_encode(
	const struct word_code *code, const struct word_code_changes *changes, uint8_t *into);
/* `changes` has count and parameter, both checked; `into` has base.len bytes. Invalid when the
 * payload is malformed. */
int word_code_decode(const struct word_code *code, const struct word_code_changes *changes,
	struct span payload, struct span base, uint8_t *into, struct error *err);

#endif
