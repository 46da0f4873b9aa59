/* Steps in ulps, none of them zero, as bits: all signs (1 for down), then the steps that are longer
 * than one ulp: how many single ones lie between, and the length. docs/FORMAT.md, "ulp-class
 * blocks". Any thread. */
#ifndef WEIGHTS_CODEC_ULP_STEPS_H
#define WEIGHTS_CODEC_ULP_STEPS_H

#include "weights/codec/bit_stream.h"

/* `places` is room for `count` numbers and one more, of no use afterwards. */
void ulp_steps_write(
	struct bit_writer *writer, const int16_t *steps, size_t count, uint32_t *places);
/* False when the bits break a rule; running out of bits is for the caller to see. */
bool ulp_steps_read(struct bit_reader *reader, size_t count, int16_t *steps);

#endif
