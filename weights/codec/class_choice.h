/* Chooses which exponents of a block make classes. The choice only decides the size of the block:
 * a decoder takes any. */
#ifndef WEIGHTS_CODEC_CLASS_CHOICE_H
#define WEIGHTS_CODEC_CLASS_CHOICE_H

#include "weights/codec/ulp_word.h"

/* `base` holds whole words of `format`. The first class takes the largest exponents that together
 * are common enough for a class; the last class takes all exponents that are left. */
void class_choice(
	struct span base, struct ulp_format format, uint8_t *out_top, uint8_t *out_classes);

#endif
