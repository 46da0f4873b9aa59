/* Lays out and writes a delta once it is known what changed. */
#ifndef WEIGHTS_DELTA_WRITER_H
#define WEIGHTS_DELTA_WRITER_H

#include "weights/delta.h"
#include "weights/diff_tensor.h"

/* `tensors` is in schema order with the first pass done; `stats` is filled but for delta_bytes, which is set here. */
int delta_writer_run(const struct delta_diff_params *params, struct diff_tensor *tensors, struct delta_stats *stats, struct error *err);

#endif
