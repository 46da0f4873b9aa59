/* What a look at 4 KiB of a chunk says about how it will compress. Deterministic. Any thread; one
 * at a time per compressor. */
#ifndef CHUNKER_CODEC_TRIAL_H
#define CHUNKER_CODEC_TRIAL_H

#include "base/format/compress.h"
#include "chunker/codec.h"

/* False for what looks random: compressing it is wasted work. */
bool codec_trial_compressible(struct compressor *compressor, struct span content);
/* CODEC_RAW, or the private codec that promises the smallest result. */
enum codec codec_trial_best(struct compressor *compressor, struct span content);

#endif
