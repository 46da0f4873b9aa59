/* One walk over all tensors of a source, or of two sources of one schema side by side, on many
 * threads: in parallel over tensors, and over the blocks of tensors so large that one thread would
 * be left with them. Digests are made on the way, while the bytes are in cache; where several
 * threads share a tensor they take turns at it, in order of the blocks. */
#ifndef WEIGHTS_MODEL_TENSOR_PASS_H
#define WEIGHTS_MODEL_TENSOR_PASS_H

#include "weights/model/tensor_source.h"
#include "weights/model/work_watch.h"

struct tensor_block {
	size_t tensor;
	uint64_t number;  /* of the block in the tensor */
	uint64_t at;      /* its first byte in the tensor */
	struct span base; /* empty without a base */
	struct span next; /* both live until the function returns */
};
/* `worker` counts from 0: for what each thread keeps to itself. */
typedef int tensor_pass_fn(
	void *state, unsigned worker, const struct tensor_block *block, struct error *err);

struct tensor_pass {
	struct tensor_source *base; /* NULL: only next */
	struct tensor_source *next;
	unsigned threads; /* 0: one per core */
	/* each tensor is one thread's, front to back; otherwise the blocks of a large one come in
	 * any order */
	bool keeps_tensors;
	tensor_pass_fn *block; /* NULL: only digests */
	void *state;
	struct work_watch *watch; /* told of the bytes of `next`; NULL: nobody */
	/* NULL, or per tensor: `next` has the bytes of `base`, so it need not be hashed again */
	const bool *same;
	/* NULL, or digests of the base that are proven already */
	const struct digest128 *known_base;
	/* schema order; NULL: not wanted. Not looked at where known_base is given */
	struct digest128 *base_digests;
	struct digest128 *next_digests;
};

unsigned tensor_pass_workers(const struct tensor_pass *pass);
/* The error is that of the first block that failed, in order of tensors. */
int tensor_pass_run(const struct tensor_pass *pass, struct error *err);

#endif
