/* Writes the delta between two sources of one schema, in any format: what diff, fold, transcode and
 * the server use. One pass over both sides, in parallel over tensors and over blocks of large ones,
 * in memory of a few blocks per thread; payloads wait in an unnamed file and are put in their
 * places when their sizes are known. docs/FORMAT.md, "Delta files". */
#ifndef WEIGHTS_DELTA_DELTA_ENCODE_H
#define WEIGHTS_DELTA_DELTA_ENCODE_H

#include "weights/delta/delta.h"
#include "weights/delta/model_files.h"
#include "weights/model/tensor_source.h"

struct delta_encode_params {
	struct tensor_source *base;
	struct tensor_source *next;
	const struct model_files *base_files; /* NULL: the delta carries every file and header */
	const struct model_files *next_files;
	enum delta_format format;
	enum delta_checksum checksum; /* of the slime formats */
	/* tensors, schema order; NULL: computed on the way */
	const struct digest128 *base_digests;
	const struct digest128 *next_digests;
	/* NULL, or schema_count of them, the caller's: given out on success */
	struct digest128 *out_base_digests;
	struct digest128 *out_next_digests;
	/* of the checkpoint; NULL: any. Otherwise wrong_base, and nothing is written */
	const struct digest128 *expected_base;
	const struct digest128 *expected_next; /* the same: digest_mismatch */
	uint64_t model_version; /* the result's step: TRL's counter, slime's version */
	bool has_base_step;     /* otherwise the base is model_version - 1 */
	uint64_t base_step;
	/* One file of a delta that others make along with us (ulp-class, one shard): it holds every
	 * tensor, changed or not, so that its index is known before it is made, and says no
	 * digests, which are those of the whole. */
	bool is_part;
	unsigned threads;             /* 0: one per core */
	struct work_watch *watch;     /* NULL: nobody */
	const char *out;              /* must not exist; written beside and renamed */
	const struct file_ops *files; /* NULL: file_system() */
};
/* schema_mismatch when the sources' tensors differ; unsupported when the format cannot hold a
 * change, naming the tensor; exists when `out` does; what the sources fail with. On any failure
 * nothing is left of `out`. */
int delta_encode(
	const struct delta_encode_params *params, struct delta_stats *out_stats, struct error *err);

#endif
