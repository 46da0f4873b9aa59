/* The result of a delta on its base, as a source. Blocks are decoded when they are read, each by
 * itself if the format allows it. Sources stack: the base may be a delta_source too (delta_stack).
 * A read proves what the format can prove: it fails with digest_mismatch when a block's hash or a
 * tensor's checksum differs, and with invalid for malformed bytes; the text names the delta and the
 * tensor. The caller checks that the base is the right one: it compares base_digest with the base's
 * digest (weights/delta/delta_metadata.h). */
#ifndef WEIGHTS_DELTA_DELTA_SOURCE_H
#define WEIGHTS_DELTA_DELTA_SOURCE_H

#include "weights/delta/delta_reader.h"
#include "weights/model/tensor_source.h"

/* Both are borrowed and must outlive the source. NULL with invalid when the delta changes a tensor
 * that the base lacks or that does not fit it, or when its blocks do not add up to the tensor. */
struct tensor_source *delta_source_new(
	const struct delta_reader *reader, struct tensor_source *base, struct error *err);
/* The same over a source that stands in for the base. Does not check slime's checksums. */
struct tensor_source *delta_source_new_unproven(
	const struct delta_reader *reader, struct tensor_source *base, struct error *err);

#endif
