/* Several deltas become one. With a base: any formats in, any format out, by decoding (delta_stack,
 * delta_encode). Without one only formats whose changes stand for themselves fold, into their own
 * kind: slime-xor payloads are put over each other by XOR, TRL's positions are united, the last
 * value counts. */
#ifndef WEIGHTS_DELTA_FOLD_H
#define WEIGHTS_DELTA_FOLD_H

#include "weights/delta/delta_encode.h"

struct fold_params {
	struct tensor_source *base; /* with base_files; NULL: fold without one */
	const struct model_files *base_files;
	const struct digest128 *base_digests; /* of its tensors, when proven; NULL: computed here */
	const char *const *deltas;            /* files or folders, in order */
	size_t count;                         /* at least 1 */
	enum delta_format format;             /* with a base; without one the inputs' */
	enum delta_checksum checksum;
	/* otherwise as the deltas say; a full checkpoint in a delta's place does not */
	bool has_step;
	uint64_t step; /* of the result; with a base only */
	unsigned threads;
	struct work_watch *watch; /* with a base; NULL: nobody */
	const char *out;
	const struct file_ops *files;
};
/* wrong_base when a delta does not follow the one before it or the first does not follow the base;
 * unsupported when these do not fold without a base; digest_mismatch when a result is not what its
 * delta says. On any failure nothing is left of `out`. */
int fold(const struct fold_params *params, struct delta_stats *out_stats, struct error *err);

#endif
