/* Folds without a base: see fold.h. The deltas know only names and sizes of their tensors, so
 * sources over a base of zeros stand in for the checkpoints. */
#ifndef WEIGHTS_DELTA_FOLD_PLAIN_H
#define WEIGHTS_DELTA_FOLD_PLAIN_H

#include "weights/delta/delta_reader.h"
#include "weights/delta/fold.h"
#include "weights/delta/payload.h"

int fold_plain(const struct fold_params *params, struct delta_stats *out_stats, struct error *err);

/* One fold. */
struct fold_plain {
	const struct fold_params *params;
	struct delta_reader **readers; /* params->count of them */
	struct schema *schema;         /* all tensors that any of the deltas changes */
	struct tensor_source *zeros;
	struct delta_encode_params encode;
	struct payload payload;
};
/* The functions of a family of formats. */
struct fold_family {
	/* gives the least size of the entry's tensor */
	int (*size)(const struct delta_entry *entry, uint64_t *out_elements, struct error *err);
	enum dtype dtype;
	bool exact; /* all entries of a tensor must give the same size */
	int (*fill)(struct fold_plain *plain, struct error *err); /* fills the payload */
};
extern const struct fold_family fold_family_xor;
extern const struct fold_family fold_family_trl;

#endif
