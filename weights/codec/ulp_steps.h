/* Steps in ulps as bits; no step is zero. First come all signs (1 for down). Then comes each step
 * that is longer than one ulp: the count of single ulps before it, and its length. docs/FORMAT.md,
 * "ulp-class blocks". Any thread. */
#ifndef WEIGHTS_CODEC_ULP_STEPS_H
#define WEIGHTS_CODEC_ULP_STEPS_H

#include "weights/codec/bit_stream.h"

/* `places` is scratch memory for `count` numbers and one more. */
void ulp_steps_write(
	struct bit_writer *writer, const int16_t *steps, size_t count, uint32_t *places);
/* False when the bits break a rule. The caller checks afterwards whether the reader ran out of
 * bits. */
bool ulp_steps_read(struct bit_reader *reader, size_t count, int16_t *steps);

#endif
