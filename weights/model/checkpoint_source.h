/* The tensors of a mapped checkpoint as a source. Its blocks are the mapped bytes. */
#ifndef WEIGHTS_MODEL_CHECKPOINT_SOURCE_H
#define WEIGHTS_MODEL_CHECKPOINT_SOURCE_H

#include "weights/model/checkpoint.h"
#include "weights/model/tensor_source.h"

/* `checkpoint` is borrowed and must outlive the source. */
struct tensor_source *checkpoint_source_new(const struct checkpoint *checkpoint);

#endif
