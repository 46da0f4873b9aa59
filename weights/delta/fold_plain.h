/* Folding without a base: fold.h. What is folded knows its tensors' names and sizes alone, so
 * sources over a base of zeros stand in for the checkpoints. */
#ifndef WEIGHTS_DELTA_FOLD_PLAIN_H
#define WEIGHTS_DELTA_FOLD_PLAIN_H

#include "weights/delta/delta_reader.h"
#include "weights/delta/fold.h"
#include "weights/delta/payload.h"

int fold_plain(const struct fold_params *params, struct delta_stats *out_stats, struct error *err);

/* The parts by family. Each gives the tensors that any of the deltas changes, as a schema of its
 * own making, and fills the payload. */
struct fold_plain {
	const struct fold_params *params;
	struct delta_reader **readers; /* params->count */
	struct schema *schema;
	struct tensor_source *zeros;
	struct delta_encode_params encode;
	struct payload payload;
};
struct fold_family {
	/* that the entry needs at least */
	int (*size)(const struct delta_entry *entry, uint64_t *out_elements, struct error *err);
	enum dtype dtype;
	bool exact; /* all entries of a tensor say the same size */
	int (*fill)(struct fold_plain *plain, struct error *err);
};
extern const struct fold_family fold_family_xor;
extern const struct fold_family fold_family_trl;

#endif
