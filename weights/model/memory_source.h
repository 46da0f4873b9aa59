/* Tensors in memory as a source. Its blocks are the tensors' own bytes: a change that is made while
 * a cursor is open shows in the blocks that the cursor has yet to give. */
#ifndef WEIGHTS_MODEL_MEMORY_SOURCE_H
#define WEIGHTS_MODEL_MEMORY_SOURCE_H

#include "weights/model/tensor_source.h"

/* `tensors` has the first byte of each tensor, in schema order; they need no alignment. That of an
 * empty tensor may be NULL. Schema, array and tensors are borrowed and must outlive the source. */
struct tensor_source *memory_source_new(const struct schema *schema, const uint8_t *const *tensors);

#endif
