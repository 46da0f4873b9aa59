/* Makes one delta of several. With a base it decodes them (delta_stack, delta_encode), so any
 * formats fold into any format. Without a base only slime-xor and TRL deltas fold, into their own
 * kind: XOR payloads are combined by XOR; TRL's positions are united, and the last value of each
 * counts. */
#ifndef WEIGHTS_DELTA_FOLD_H
#define WEIGHTS_DELTA_FOLD_H

#include "weights/delta/delta_encode.h"

struct fold_params {
	struct tensor_source *base;           /* NULL: fold without a base */
	const struct model_files *base_files; /* with a base only */
	/* proven digests of the base's tensors; NULL: computed here */
	const struct digest128 *base_digests;
	const char *const *deltas; /* files or folders, in order */
	size_t count;              /* at least 1 */
	enum delta_format format;  /* with a base only; without one it is that of the deltas */
	enum delta_checksum checksum;
	/* `step` is given; otherwise it comes from the deltas (a full checkpoint has no step) */
	bool has_step;
	uint64_t step; /* of the result; with a base only */
	unsigned threads;
	struct work_watch *watch; /* with a base only; NULL: none */
	const char *out;
	const struct file_ops *files;
};
/* Fails with wrong_base when a delta does not follow the delta before it, or the first one does not
 * follow the base; with unsupported when the deltas do not fold without a base; with
 * digest_mismatch when a result has another digest than its delta says. Nothing is left of `out`
 * after a failure. */
int fold(const struct fold_params *params, struct delta_stats *out_stats, struct error *err);

#endif
