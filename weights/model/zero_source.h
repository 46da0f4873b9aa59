/* Tensors of any schema whose bytes are all zero. They stand in for a base that is not at hand. */
#ifndef WEIGHTS_MODEL_ZERO_SOURCE_H
#define WEIGHTS_MODEL_ZERO_SOURCE_H

#include "weights/model/tensor_source.h"

/* `schema` is borrowed. */
struct tensor_source *zero_source_new(const struct schema *schema);

#endif
