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
/* From here on reads count what the delta changes: `changed[tensor]` becomes the number of elements
 * of that tensor whose bytes differ from the base's, once it has been read from its first block to
 * its last. Elements of dtypes below a byte are counted in bytes. `changed` is the caller's, one
 * for each tensor, all 0; it must outlive the cursors. Only one thread at a time may read a tensor.
 * Costs a compare of two blocks that are in the cache; of tensors that are stored whole the base is
 * read too. Call it before any cursor is opened. */
void delta_source_count(struct tensor_source *source, uint64_t *changed);

#endif
