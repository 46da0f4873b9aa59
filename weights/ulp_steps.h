/* Steps in ulps, none of them zero, as bits: all signs (1 for down), then the steps that are longer than one ulp: how many single ones lie between, and
 * the length. docs/FORMAT.md, "ulp-class blocks". Any thread. */
#ifndef WEIGHTS_ULP_STEPS_H
#define WEIGHTS_ULP_STEPS_H

#include "weights/bit_stream.h"

uint64_t ulp_steps_bits(const int16_t *steps, size_t count);
void ulp_steps_write(struct bit_writer *writer, const int16_t *steps, size_t count);
/* False when the bits break a rule; running out of bits is for the caller to see. */
bool ulp_steps_read(struct bit_reader *reader, size_t count, int16_t *steps);

#endif
