/* Which exponents of a block make classes. A choice of the encoder's: any choice decodes. */
#ifndef WEIGHTS_CODEC_CLASS_CHOICE_H
#define WEIGHTS_CODEC_CLASS_CHOICE_H

#include "weights/codec/ulp_word.h"

/* `base` holds whole words of `format`. The first class takes the largest exponents that together
 * are common enough to be worth one, the last class all that is left over. */
void class_choice(
	struct span base, struct ulp_format format, uint8_t *out_top, uint8_t *out_classes);

#endif
