/* Writes the delta between two sources of one schema, in any format. diff, fold, transcode and the
 * server use it. It makes one pass over both sides, in parallel over tensors and over blocks of
 * large tensors, and needs memory for a few blocks per thread. Payloads wait in unnamed files and
 * are copied to their places when their sizes are known. docs/FORMAT.md, "Delta files". */
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
	enum delta_checksum checksum; /* for the slime formats */
	/* tensor digests in schema order; NULL: computed in the pass */
	const struct digest128 *base_digests;
	const struct digest128 *next_digests;
	/* the caller's arrays of schema_count, written on success; NULL: not wanted */
	struct digest128 *out_base_digests;
	struct digest128 *out_next_digests;
	/* digest that the base checkpoint must have, else wrong_base; NULL: any */
	const struct digest128 *expected_base;
	/* the same for the result, else digest_mismatch */
	const struct digest128 *expected_next;
	uint64_t model_version; /* the result's step: TRL's counter, slime's version */
	bool has_base_step;     /* otherwise the base step is model_version - 1 */
	uint64_t base_step;
	/* One file of a delta that several processes make together (ulp-class, one shard). It has
	 * every tensor, changed or not, so that its index is known in advance. It has no digests,
	 * because those are of the whole checkpoint. */
	bool is_part;
	unsigned threads;             /* 0: one per core */
	struct work_watch *watch;     /* NULL: none */
	const char *out;              /* must not exist; built beside it and renamed */
	const struct file_ops *files; /* NULL: file_system() */
};
/* Fails with schema_mismatch when the sources' tensors differ, with unsupported and the tensor's
 * name when the format cannot hold a change, with exists when `out` exists, and with the errors of
 * the sources. Nothing is left of `out` after a failure. */
int delta_encode(
	const struct delta_encode_params *params, struct delta_stats *out_stats, struct error *err);

#endif
