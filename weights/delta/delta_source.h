/* What a delta makes of its base, as a source: blocks are decoded on the way, each by itself where
 * the format allows it. Sources stack: the base may be a delta_source too (delta_stack). What the
 * format can prove is proven while reading: a block whose hash differs and a tensor whose checksum
 * differs are digest_mismatch, malformed bytes are invalid, both naming the delta and the tensor.
 * Whether the base is the right one is for the caller: base_digest against the base's digests
 * (weights/delta/delta_metadata.h). */
#ifndef WEIGHTS_DELTA_DELTA_SOURCE_H
#define WEIGHTS_DELTA_DELTA_SOURCE_H

#include "weights/delta/delta_reader.h"
#include "weights/model/tensor_source.h"

/* Both are borrowed and must outlive it. NULL: the delta changes a tensor that the base lacks or
 * that fits ill (invalid), or its blocks do not add up to the tensor. */
struct tensor_source *delta_source_new(
	const struct delta_reader *reader, struct tensor_source *base, struct error *err);
/* The same over what stands in for a base that is not at hand: slime's checksums are not looked
 * at. */
struct tensor_source *delta_source_new_unproven(
	const struct delta_reader *reader, struct tensor_source *base, struct error *err);

#endif
