/* One tensor on its way through delta_diff: the first pass finds what changed and hashes, the second writes it where the layout has put
 * it. */
#ifndef WEIGHTS_DIFF_TENSOR_H
#define WEIGHTS_DIFF_TENSOR_H

#include "weights/index_code.h"
#include "weights/schema.h"
#include "weights/staging.h"
#include "weights/tensor_changes.h"

enum diff_kind { DIFF_SAME, DIFF_SPARSE, DIFF_WHOLE };

struct diff_tensor {
	const struct schema_tensor *facts;
	struct span base;
	struct span next;
	enum diff_kind kind;
	uint64_t elements;
	uint64_t changed;
	struct tensor_changes changes; /* of DIFF_SPARSE */
	/* Set by the layout: */
	const struct staged_file *file;
	enum index_form form;
	uint64_t index_at;  /* absolute, as is the next */
	uint64_t values_at; /* of DIFF_WHOLE: the tensor's bytes */
};

/* What one thread needs. */
struct diff_scratch {
	uint16_t *positions;
	uint8_t *indexes;
	uint8_t *values;
	struct xxh3_stream *base;
	struct xxh3_stream *next;
};
void diff_scratch_init(struct diff_scratch *scratch);
void diff_scratch_release(struct diff_scratch *scratch);

/* `facts`, `base` and `next` are set. Writes the digests that are not NULL. */
void diff_tensor_find(struct diff_tensor *tensor, struct digest128 *out_base, struct digest128 *out_next, _Atomic int64_t *budget,
	struct diff_scratch *scratch);
int diff_tensor_write(const struct diff_tensor *tensor, const struct file_ops *ops, struct diff_scratch *scratch, struct error *err);
void diff_tensor_release(struct diff_tensor *tensor);

#endif
