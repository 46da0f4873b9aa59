/* Predicts from 4 KiB of a chunk how it will compress. Deterministic. Any thread; one at a time per
 * compressor. */
#ifndef CHUNKER_CODEC_TRIAL_H
#define CHUNKER_CODEC_TRIAL_H

#include "base/format/compress.h"
#include "chunker/codec.h"

/* False when the content looks random: compressing it would be wasted work. */
bool codec_trial_compressible(struct compressor *compressor, struct span content);
/* The private codec that promises the smallest result, or CODEC_RAW. */
enum codec codec_trial_best(struct compressor *compressor, struct span content);

#endif
